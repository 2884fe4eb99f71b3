package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"prophet/runtime/pass"
	"prophet/runtime/tables"
	"prophet/runtime/trace"
)

// queries are useful questions to the tables, each of which a test asks.
//
//go:embed queries.sql
var queries string

func csvFormat(s *selection) *exportFormat {
	return tablesFormat(s, "csv", "write tables (see --schema) as CSV files", tables.CSV)
}

func parquetFormat(s *selection) *exportFormat {
	return tablesFormat(s, "parquet", "write tables (see --schema) as parquet files", tables.Parquet)
}

func tablesFormat(s *selection, flag, help string, f tables.Format) *exportFormat {
	return &exportFormat{flag: flag, what: "DIR", selects: true, help: help,
		write: func(t *trace.Trace, out string) (*exported, error) {
			if out == "-" {
				return nil, usage("--%s writes several files: name a directory", flag)
			}
			dir, err := newFiles(out)
			if err != nil {
				return nil, err
			}
			defer dir.remove()
			e, err := s.selecting(t, "exporting tables", func(o pass.Options) (*pass.Result, error) {
				return tables.Write(t, o, f, dir.create)
			})
			if err != nil {
				return nil, err
			}
			return e, dir.commit()
		}}
}

// files are files of the user's in a directory: all are there at the end, or none is.
type files struct {
	dir  string
	temp map[string]string // by name
}

// newFiles makes the directory where it is not there yet, for nobody else, as a trace is.
func newFiles(dir string) (*files, error) {
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return nil, usage("%s is not a directory", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &files{dir, map[string]string{}}, nil
}

func (d *files) create(name string) (io.WriteCloser, error) {
	f, err := os.CreateTemp(d.dir, "."+name+".*") // 0600
	if err != nil {
		return nil, err
	}
	d.temp[name] = f.Name()
	return f, nil
}

func (d *files) commit() error {
	var errs []error
	for name, temp := range d.temp {
		err := os.Rename(temp, filepath.Join(d.dir, name))
		if err == nil {
			delete(d.temp, name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d *files) remove() {
	for _, temp := range d.temp {
		os.Remove(temp)
	}
}

// pages prints what is asked for beside an export.
func pages(schema, ask bool) {
	if schema {
		fmt.Print(tables.Page())
	}
	if schema && ask {
		fmt.Println()
	}
	if ask {
		fmt.Print(queries)
	}
}
