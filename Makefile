# Prophet. `make` builds, `make test` sets up and passes all tests, `make demo` shows what it is for.
# CONTRIBUTING.md says what each target is and needs.

GO        ?= go
PREFIX    ?= /usr/local
DESTDIR   ?=
BUILD     := build
LDFLAGS   := -s -w
# go build does not know that these two are inputs; their checksum among the flags tells it.
SHLDFLAGS  = $(LDFLAGS) -X main.map=$(firstword $(shell cat shim/zexports_$(1).map shim/start.ld | cksum)) -extldflags=-Wl,-z,noseparate-code,-z,norelro,-T,$(CURDIR)/shim/start.ld,-soname=libprophet.so,-fini=none,--version-script=$(CURDIR)/shim/zexports_$(1).map,-Map=$(2)
# Nor does it know of headers that lie in other directories.
HEADERS    = CGO_CPPFLAGS=-DPROPHET_HEADERS=$(firstword $(shell cat cabi/*.h | cksum))
# Each function and variable has a section of its own, so that shim/start.ld can say which lie together.
PIECES    := CGO_CFLAGS="-O2 -g -ffunction-sections -fdata-sections -fno-plt"
# Where prophet begins, before Go: see the package.
ENTRY     := -E prophet/runtime/ignored.entry
CROSS     := aarch64-linux-gnu
GOSRC     := $(shell find cabi runtime tools replayd -name '*.go' -o -name '*.s' 2>/dev/null) $(wildcard runtime/report/page/*.*) go.mod
ISSUESRC  := $(wildcard replayd/*/*.c replayd/*/*.h replayd/*/*.S cabi/*.h)
SHIMSRC   := $(wildcard shim/*.c shim/*.h shim/*.go shim/*.S cabi/*.h cabi/*.go runtime/trace/*.go) $(wildcard shim/*.map shim/*.ld tools/asleep/*.go) go.mod

.PHONY: all shim setup test unit check generate format bench accuracy demo fuzz arm64 install uninstall deb clean
all: $(BUILD)/libprophet.so $(BUILD)/replayd $(BUILD)/prophet $(BUILD)/share
shim: $(BUILD)/libprophet.so

$(BUILD)/libprophet.so: $(SHIMSRC)
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 $(HEADERS) $(PIECES) $(GO) build -buildmode=c-shared -ldflags '$(call SHLDFLAGS,$(shell $(GO) env GOARCH),$(CURDIR)/$@.map)' -o $@.linked ./shim
	$(GO) run ./tools/asleep $@.linked $@.map $@
	@rm -f $@.linked* $@.map $(@:.so=.so.h)

$(BUILD)/prophet: $(GOSRC)
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS) $(ENTRY)' -o $@ ./tools/prophet

# replayd issues with C, and travels to other machines: one static file.
STATIC    := -tags netgo,osusergo -ldflags '$(LDFLAGS) -linkmode external -extldflags=-static'
$(BUILD)/replayd: $(GOSRC) $(ISSUESRC)
	CGO_ENABLED=1 $(HEADERS) $(GO) build $(STATIC) -o $@ ./replayd

# The library for the clouds' other CPU; tests run it under user-mode emulation.
arm64: $(BUILD)/arm64/libprophet.so $(BUILD)/arm64/replayd
$(BUILD)/arm64/libprophet.so: $(SHIMSRC)
	@mkdir -p $(BUILD)/arm64
	CGO_ENABLED=1 $(HEADERS) $(PIECES) GOARCH=arm64 CC=$(CROSS)-gcc $(GO) build -buildmode=c-shared -ldflags '$(call SHLDFLAGS,arm64,$(CURDIR)/$@.map)' -o $@.linked ./shim
	$(GO) run ./tools/asleep $@.linked $@.map $@
	@rm -f $@.linked* $@.map $(@:.so=.so.h)
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build -ldflags '$(LDFLAGS) $(ENTRY)' -o $(BUILD)/arm64/prophet ./tools/prophet
$(BUILD)/arm64/replayd: $(GOSRC) $(ISSUESRC)
	@mkdir -p $(BUILD)/arm64
	CGO_ENABLED=1 $(HEADERS) GOARCH=arm64 CC=$(CROSS)-gcc $(GO) build $(STATIC) -o $@ ./replayd

# What the tests run: Debian's packages in tests/packages.
setup:
	@tests/setup

test: setup all arm64 check
	$(GO) test -timeout 35m ./...

# The tests that need nothing but Go and gcc.
unit: all
	$(GO) test ./cabi/... ./runtime/... ./tools/... ./replayd/... ./tests/lint/...

check:
	$(GO) run ./tools/gen -check
	@bad=$$(gofmt -l cabi runtime shim tools replayd tests bench); test -z "$$bad" || { echo "not formatted (run 'make format'): $$bad"; exit 1; }
	@clang-format --dry-run --Werror $$(ls shim/*.c shim/*.h | grep -v /z) replayd/*/*.[ch] replayd/*/*.c replayd/*/*.h bench/*/*.c tests/*/*.c cabi/prophet.h
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test ./tests/lint/...

generate:
	$(GO) run ./tools/gen

format:
	gofmt -w cabi runtime shim tools replayd tests bench
	clang-format -i $$(ls shim/*.c shim/*.h | grep -v /z) replayd/*/*.[ch] replayd/*/*.c replayd/*/*.h bench/*/*.c tests/*/*.c cabi/prophet.h

bench: all
	$(GO) run ./bench

# How good predictions are: the table and plot in bench/. SHORT=1: a few programs, to see that it works; ONLY=pigz-p2@cpus1: these again.
accuracy: all
	@tests/setup accuracy
	$(GO) build -o $(BUILD)/accuracy ./bench/accuracy
	$(BUILD)/accuracy --build $(BUILD) $(if $(SHORT),--short --out $(BUILD)/accuracy-short) $(if $(ONLY),--only $(ONLY))

demo: all
	@tests/setup demo
	@bench/demo $(BUILD)

FUZZTIME ?= 30s
fuzz:
	@for f in $$(grep -rhoE '^func Fuzz[A-Za-z0-9]+' runtime cabi replayd --include='*_test.go' | cut -d' ' -f2 | sort -u); do \
		p=$$(grep -rlE "^func $$f\(" runtime cabi replayd --include='*_test.go' | head -1); \
		echo "== $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$(dirname $$p) || exit 1; done

VERSION  = $(shell sed -n 's/^\#define PROPHET_Version "\(.*\)"/\1/p' cabi/zlayout.h)
FILL     = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|'
PUT      = $(DESTDIR)$(PREFIX)

# Man pages and completions, from the commands themselves.
$(BUILD)/share: $(BUILD)/prophet $(BUILD)/replayd cabi/libprophet.7.in
	@rm -rf $@ $@.new
	$(BUILD)/prophet manual $@.new
	$(BUILD)/replayd manual $@.new
	@mkdir -p $@.new/man/man7
	$(FILL) cabi/libprophet.7.in > $@.new/man/man7/libprophet.7
	@mv $@.new $@

install: all
	install -d $(PUT)/bin $(PUT)/lib/pkgconfig $(PUT)/include $(PUT)/share
	install -m 755 $(BUILD)/prophet $(BUILD)/replayd $(PUT)/bin/
	install -m 644 $(BUILD)/libprophet.so $(PUT)/lib/
	install -m 644 cabi/prophet.h $(PUT)/include/
	$(FILL) cabi/prophet.pc.in > $(PUT)/lib/pkgconfig/prophet.pc
	cd $(BUILD)/share && find . -type f -exec install -D -m 644 {} $(abspath $(PUT))/share/{} \;

uninstall: $(BUILD)/share
	rm -f $(PUT)/bin/prophet $(PUT)/bin/replayd $(PUT)/lib/libprophet.so $(PUT)/include/prophet.h $(PUT)/lib/pkgconfig/prophet.pc
	cd $(BUILD)/share && find . -type f -exec rm -f $(abspath $(PUT))/share/{} \;

# A Debian package of what `make install` installs, built without debhelper.
deb: all
	@tools/deb $(BUILD) $(VERSION) $(MAKE)

clean:
	rm -rf $(BUILD)
