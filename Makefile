# Prophet. `make` builds, `make test` sets up and passes all tests, `make demo` shows what it is for.
# See CONTRIBUTING.md for what each target is and needs.

GO      ?= go
PREFIX  ?= /usr/local
BUILD   := build
MODULE  := ./...
MAP     := $(CURDIR)/shim/zexports.map
LDFLAGS := -s -w

.PHONY: all shim generate
all: $(BUILD)/prophet $(BUILD)/replayd shim

shim: $(BUILD)/libprophet.so
$(BUILD)/libprophet.so: $(wildcard shim/*.c shim/*.h shim/*.go shim/*.S cabi/*.h cabi/*.go) shim/zexports.map go.mod
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 $(GO) build -buildmode=c-shared -ldflags '$(LDFLAGS) -extldflags=-Wl,--version-script=$(MAP)' -o $@ ./shim
	@rm -f $(BUILD)/libprophet.h

generate:
	$(GO) run ./tools/gen
