# SPDX-License-Identifier: BSD-3-Clause
"""slingshot_test.py BUILD SOURCE: src/fabric/ofi/slingshot.c, which is built only where libfabric has its cxi
provider, compiles without a warning against the headers in the folders of WEFT_LIBFABRIC_HEADERS (with colons
between them; rdma/fabric.h and rdma/fi_cxi_ext.h below), asks for the service that it was told, and names the NIC."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import tap
from tap import equal, skip, test

SOURCE = sys.argv[2]
HEADERS = os.environ.get("WEFT_LIBFABRIC_HEADERS", "")
WARNINGS = ("-std=gnu11", "-D_GNU_SOURCE", "-DWEFT_SLINGSHOT", "-Wall", "-Wextra", "-Werror")
# What it asks for, by the service and by SLINGSHOT_VNIS.
MAIN = r"""
#include "fabric/ofi/ofi.h"
#include <rdma/fi_cxi_ext.h>
#include <stdio.h>
#include <stdlib.h>

static int say(int status, const char *format, ...)
{
    (void)format;
    return status;
}

static const struct fabric_host host = {.fail = say};
const struct fabric_host *weft_ofi_host = &host;

int main(int argc, char **argv)
{
    struct fi_domain_attr domain = {0};
    struct fi_ep_attr ep = {0};
    struct fi_info hints = {.domain_attr = &domain, .ep_attr = &ep};
    const struct fabric_want want = {.service = strtoull(argv[argc - 1], NULL, 10)};
    int status = weft_ofi_slingshot_request(&hints, &want);
    const struct cxi_auth_key *key = (const void *)domain.auth_key;
    struct cxip_nic_attr attr = {.version = FI_CXI_NIC_ATTR_VER, .addr = 0x1a20};
    struct fid_nic nic = {.prov_attr = &attr};
    const struct fi_info found = {.nic = &nic}, less = {0};
    struct fabric_facts facts = {.self = "as it was"};
    printf("%s service %u vni %u\n", status ? "refused" : "good", key ? key->svc_id : 0,
           key ? key->vni : 0);
    weft_ofi_slingshot_facts(&less, &facts);
    fprintf(stderr, "%s, ", facts.self);
    weft_ofi_slingshot_facts(&found, &facts);
    fprintf(stderr, "%.14s", facts.self);
    free(domain.auth_key);
    free(ep.auth_key);
    return 0;
}
"""


@test
def the_cxi_provider_is_asked_for_the_service_that_was_given():
    if not HEADERS:
        skip("WEFT_LIBFABRIC_HEADERS does not name the folders of libfabric's headers with its cxi provider")
    with tempfile.TemporaryDirectory() as folder:
        main, binary = os.path.join(folder, "main.c"), os.path.join(folder, "main")
        with open(main, "w", encoding="utf-8") as file:
            file.write(MAIN)
        places = [word for place in HEADERS.split(":") for word in ("-isystem", place)]
        built = subprocess.run(
            ["cc", *WARNINGS, "-I" + os.path.join(SOURCE, "src"), *places, main,
             os.path.join(SOURCE, "src/fabric/ofi/slingshot.c"), "-o", binary],
            capture_output=True, text=True, timeout=120, check=False)
        equal(built.returncode, 0, built.stderr[:3000])
        for service, vnis, wanted in (("1", "", "good service 0 vni 0\n"), ("2", "", "refused service 0 vni 0\n"),
                                      ("2", "10,11", "good service 2 vni 10\n"),
                                      ("5000000000", "10", "refused service 0 vni 0\n")):
            ran = subprocess.run([binary, service], capture_output=True, text=True, timeout=60, check=False,
                                 env={"SLINGSHOT_VNIS": vnis})
            equal(ran.stdout, wanted, f"service {service}, VNIs {vnis!r}")
            equal(ran.stderr, "as it was, NIC 0x1a20 PID")


if __name__ == "__main__":
    tap.main()
