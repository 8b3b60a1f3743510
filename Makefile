# Shortcuts. CMake and Ninja do the building; see CMakeLists.txt.
#   make demo    install what is needed, build, and run the whole pipeline on phantom slides
#   make test    install what is needed, build, and run all tests (plain and with sanitizers)
BUILD ?= build
JOBS ?= 2
PREFIX ?= /usr/local
CONFIGURE = cmake -G Ninja -S . -DCMAKE_INSTALL_PREFIX=$(PREFIX)

all: build

build:
	@scripts/install build
	@mkdir -p $(BUILD)
	@$(CONFIGURE) -B $(BUILD) -DMICROTOME_TESTS=OFF >$(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }
	@cmake --build $(BUILD)

demo: build
	@scripts/demo $(BUILD)/microtome demo

demo-classes: build
	@scripts/demo-classes $(BUILD)/microtome demo-classes

test:
	@scripts/install build test
	@scripts/test $(BUILD) $(JOBS) -DCMAKE_INSTALL_PREFIX=$(PREFIX)

asan:
	@scripts/install build test
	@$(CONFIGURE) -B $(BUILD)-asan -DMICROTOME_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug
	@cmake --build $(BUILD)-asan
	ctest -j $(JOBS) --test-dir $(BUILD)-asan --output-on-failure -LE 'slow|python|tree'

bench: build
	@scripts/install bench
	@cmake --build $(BUILD) --target bench_programs
	@bench/run $(BUILD)

format:
	@scripts/install test
	git ls-files '*.c' '*.h' | xargs clang-format -i

install: build
	cmake --install $(BUILD)

deb: build
	@scripts/install deb
	@cd $(BUILD) && cpack -G DEB >cpack.log 2>&1 || { cat cpack.log; exit 1; }
	@ls $(BUILD)/*.deb

clean:
	rm -rf $(BUILD) $(BUILD)-test $(BUILD)-asan demo demo-classes

.PHONY: all build demo demo-classes test asan bench format install deb clean
