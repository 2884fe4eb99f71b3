// Package duckdb asks DuckDB for tests, through its C library and without cgo. The library comes from npm, as its Go module
// has no binaries that a module proxy will serve; tests/setup installs it under build.
package duckdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebitengine/purego"
)

// DB is a connection to a database in memory. Not safe for concurrent use.
type DB struct {
	db, conn uintptr
}

// result is what a query fills: 48 bytes in DuckDB's header, with room.
type result [16]uint64

var (
	open      func(path string, db *uintptr) int32
	connect   func(db uintptr, conn *uintptr) int32
	query     func(conn uintptr, sql string, r *result) int32
	failure   func(r *result) string
	columns   func(r *result) uint64
	rows      func(r *result) uint64
	name      func(r *result, col uint64) string
	text      func(r *result, col, row uint64) string // never freed: tests are short
	isNull    func(r *result, col, row uint64) bool
	destroy   func(r *result)
	hangUp    func(conn *uintptr)
	closeIt   func(db *uintptr)
	libraries = "node_modules/@duckdb/node-bindings-linux-*/libduckdb.so"
)

// Open loads the library, which lies below dir, and opens a database.
func Open(dir string) (*DB, error) {
	if open == nil {
		list, _ := filepath.Glob(filepath.Join(dir, libraries))
		if len(list) != 1 {
			return nil, fmt.Errorf("DuckDB's library is not in %s: run 'make setup' first", filepath.Join(dir, libraries))
		}
		lib, err := purego.Dlopen(list[0], purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			return nil, err
		}
		for symbol, f := range map[string]any{"duckdb_open": &open, "duckdb_connect": &connect, "duckdb_query": &query, "duckdb_result_error": &failure,
			"duckdb_column_count": &columns, "duckdb_row_count": &rows, "duckdb_column_name": &name, "duckdb_value_varchar": &text,
			"duckdb_value_is_null": &isNull, "duckdb_destroy_result": &destroy, "duckdb_disconnect": &hangUp, "duckdb_close": &closeIt} {
			purego.RegisterLibFunc(f, lib, symbol)
		}
	}
	var d DB
	if open(":memory:", &d.db) != 0 {
		return nil, errors.New("DuckDB opens no database")
	}
	if connect(d.db, &d.conn) != 0 {
		return nil, errors.New("DuckDB does not connect")
	}
	return &d, nil
}

// Close ends the connection and drops the database.
func (d *DB) Close() {
	hangUp(&d.conn)
	closeIt(&d.db)
}

// Query asks, and gives the columns' names and the rows as text; null is "NULL".
func (d *DB) Query(sql string) (names []string, list [][]string, err error) {
	var r result
	defer destroy(&r)
	if query(d.conn, sql, &r) != 0 {
		return nil, nil, errors.New(failure(&r))
	}
	n := columns(&r)
	for c := range n {
		names = append(names, name(&r, c))
	}
	for i := range rows(&r) {
		row := make([]string, n)
		for c := range n {
			if row[c] = "NULL"; !isNull(&r, c, i) {
				row[c] = text(&r, c, i)
			}
		}
		list = append(list, row)
	}
	return names, list, nil
}

// In runs f with dir as the working directory: DuckDB finds files by it.
func In(dir string, f func() error) error {
	was, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	return errors.Join(f(), os.Chdir(was))
}
