module prophet

go 1.26.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/klauspost/compress v1.20.3
)

require golang.org/x/sys v0.49.0
