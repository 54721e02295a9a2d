# Forwards to meson. `make demo` and `make check` also install what they need, when run as root on
# Debian or Ubuntu; otherwise they print the line to run and stop.
BUILD ?= build
MESON_FLAGS ?=
PREFIX ?= /usr/local

# A folder that was set up before follows what is given now; what is installed goes to PREFIX in any case.
GIVEN = $(if $(filter-out file default,$(origin PREFIX)),--prefix $(PREFIX)) $(MESON_FLAGS)
install: GIVEN = --prefix $(PREFIX) $(MESON_FLAGS)

all: need-build $(BUILD)/build.ninja
	@$(if $(strip $(GIVEN)),meson configure $(BUILD) $(GIVEN))
	@ninja -C $(BUILD)

demo: all
	$(BUILD)/tools/cxi_send_lat --local -s 8:1M --latency-gap 10 -n 1000

# The unit tests and those of the house; all tests as built for use; what is worth it with sanitizers.
quick: need-build need-check
	@tests/support/check.sh quick

check: need-build need-check
	@tests/support/check.sh check

check-sanitized: need-build need-check
	@tests/support/check.sh sanitized

# The page in Chromium. `make check` does this too where Chromium is, and does not install it.
check-browser: need-build need-check need-browser
	@meson setup --reconfigure $(BUILD) -Dtests=enabled >/dev/null 2>&1 || \
		meson setup $(BUILD) --prefix $(PREFIX) -Dtests=enabled $(MESON_FLAGS) >/dev/null
	@ninja -C $(BUILD)
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs browser

# `make check` as on another release of Debian, in a chroot: make check-distro SUITE=trixie
SUITE ?= trixie
check-distro: need-distro
	@tests/support/distro.sh $(SUITE)

# The tree as a tarball; packages made of it, in build-dist; and those in a clean chroot: make check-deb SUITE=bookworm
dist:
	@packaging/package.sh dist

deb: need-deb
	@packaging/package.sh deb

rpm: need-rpm
	@packaging/package.sh rpm

check-deb: need-distro
	@python3 packaging/check_deb.py $(SUITE)

check-rpm: rpm
	@python3 packaging/check_rpm.py

# Compilers, levels, libraries that are missing, an archive, another machine. MATRIX="gcc-O0 aarch64" runs these.
matrix: need-build
	@tests/house/matrix.sh $(MATRIX)

soak: all need-check
	@meson test -C $(BUILD) --suite soak --verbose

fuzz: need-build need-fuzz
	@tests/support/fuzz.sh $(FUZZ_SECONDS)

bench: need-build need-bench all
	@meson setup --reconfigure $(BUILD) >/dev/null
	@ninja -C $(BUILD) bench/floor bench/peak bench/stream bench/lists bench/rdm bench/rounds
	@python3 bench/bench.py $(BUILD) $(BENCH_FLAGS)
	@python3 bench/lists.py $(BUILD) $(BENCH_FLAGS)
	@python3 bench/perftest.py $(BUILD) $(BENCH_FLAGS)
	@python3 bench/libfabric.py $(BUILD) $(BENCH_FLAGS)
	@python3 bench/output.py $(BUILD) $(BENCH_FLAGS)
	@python3 bench/threads.py $(BUILD) $(BENCH_FLAGS)
	@python3 bench/rounds.py $(BUILD) $(BENCH_FLAGS)

lint: need-build need-check need-lint $(BUILD)/build.ninja
	@tests/support/lint.sh $(BUILD)

install: all
	@meson install -C $(BUILD)

# What the last installation from this folder put there.
uninstall:
	@ninja -C $(BUILD) uninstall

clean:
	@rm -rf $(BUILD) build-*

$(BUILD)/build.ninja:
	@meson setup $(BUILD) --prefix $(PREFIX) $(MESON_FLAGS)

# What each target needs: TEST=PACKAGE, where TEST is a command, or a library as pkg-config knows it.
BUILD_NEEDS = cc=gcc meson=meson ninja=ninja-build pkg-config=pkg-config \
	lib:jansson=libjansson-dev
CHECK_NEEDS = lib:cmocka=libcmocka-dev python3=python3 ip=iproute2 mandoc=mandoc \
	lib:ucx-uct=libucx-dev lib:libfabric=libfabric-dev lib:ompi-c=libopenmpi-dev \
	mpirun.openmpi=openmpi-bin lib:mpich=libmpich-dev mpirun.mpich=mpich \
	lib:pmix=libpmix-dev srun=slurm-wlm munged=munge
BROWSER_NEEDS = chromium=chromium
FUZZ_NEEDS  = clang=clang llvm-symbolizer=llvm
LINT_NEEDS  = clang-format=clang-format clang-tidy=clang-tidy cppcheck=cppcheck
DISTRO_NEEDS = debootstrap=debootstrap
# Packages run tests while they are built, unless they are told otherwise.
PACKAGE_NEEDS = python3=python3 lib:jansson=libjansson-dev lib:ucx-uct=libucx-dev \
	lib:libfabric=libfabric-dev lib:pmix=libpmix-dev
PACKAGE_CHECK_NEEDS = lib:cmocka=libcmocka-dev mandoc=mandoc
DEB_NEEDS = dpkg-buildpackage=dpkg-dev dh=debhelper fakeroot=fakeroot $(PACKAGE_NEEDS) lib:ompi-c=libopenmpi-dev \
	lib:mpich=libmpich-dev $(if $(filter nocheck,$(DEB_BUILD_PROFILES)),,$(PACKAGE_CHECK_NEEDS))
RPM_NEEDS = rpmbuild=rpm $(PACKAGE_NEEDS) $(if $(findstring --without tests,$(RPM_FLAGS)),,$(PACKAGE_CHECK_NEEDS))
BENCH_NEEDS = python3=python3 /usr/bin/ucx_perftest=ucx-utils lib:ucx-uct=libucx-dev \
	lib:libfabric=libfabric-dev fi_pingpong=libfabric-bin iperf3=iperf3

need-build: ; @tests/support/need.sh $(BUILD_NEEDS)
need-check: need-build ; @tests/support/need.sh $(CHECK_NEEDS)
need-browser: ; @tests/support/need.sh $(BROWSER_NEEDS)
need-lint: ; @tests/support/need.sh $(LINT_NEEDS)
need-fuzz: ; @tests/support/need.sh $(FUZZ_NEEDS)
need-distro: ; @tests/support/need.sh $(DISTRO_NEEDS)
need-deb: need-build ; @tests/support/need.sh $(DEB_NEEDS)
need-rpm: need-build ; @tests/support/need.sh $(RPM_NEEDS)
need-bench: ; @tests/support/need.sh $(BENCH_NEEDS)

.PHONY: all demo quick check check-sanitized check-browser check-distro check-deb check-rpm dist deb rpm matrix soak bench fuzz lint install uninstall clean \
	need-build need-check need-browser need-lint need-fuzz need-distro need-deb need-rpm need-bench
