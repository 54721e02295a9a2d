# SPDX-License-Identifier: BSD-3-Clause
"""Weft for Spack: packages/weft/package.py of a repository. `spack dev-build weft@0.1.0` builds it in the tree."""
from spack.package import *


class Weft(MesonPackage):
    """Benchmarks of high-speed fabrics: latency, message rate and bandwidth of writes, reads, sends,
    active and tagged messages, and atomics, with the command lines of the CXI tools and of UCX."""

    license("BSD-3-Clause")

    version("0.1.0")

    variant("ucx", default=True, description="Build the fabrics on UCX")
    variant("ofi", default=True, description="Build the fabric on libfabric")
    variant("mpi", default=False, description="Build the module for programs started by mpirun")
    variant("pmix", default=False, description="Build the module for launchers that speak PMIx, as srun --mpi=pmix")
    variant("tools", default=True, description="Build weft, which reads results")
    variant("plain_names", default=True, description="Install ucx_perftest under that name")

    depends_on("c", type="build")
    depends_on("meson@0.61:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python", type="build")
    depends_on("jansson", when="+tools")
    depends_on("ucx@1.13:", when="+ucx")
    depends_on("libfabric@1.17:", when="+ofi")
    depends_on("mpi", when="+mpi")
    depends_on("pmix", when="+pmix")

    def feature(self, option, variant):
        state = "enabled" if self.spec.satisfies(f"+{variant}") else "disabled"
        return f"-D{option}={state}"

    def meson_args(self):
        args = [
            "-Dtests=disabled",
            self.feature("uct", "ucx"),
            self.feature("ucp", "ucx"),
            self.feature("ofi", "ofi"),
            self.feature("pmix", "pmix"),
            self.feature("jansson", "tools"),
        ]
        # An MPI has the module that it can have: MPICH's or Open MPI's.
        args.append("-Dmpi=auto" if self.spec.satisfies("+mpi") else "-Dmpi=disabled")
        if self.spec.satisfies("~plain_names"):
            args.append("-Daside=ucx_perftest")
        return args
