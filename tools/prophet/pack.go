package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func packCmd() *cobra.Command {
	var out string
	var force bool
	var jobs int
	c := &cobra.Command{
		Use:   "pack TRACE",
		Short: "Make one compressed, checksummed file of a trace",
		Long: `Makes one file that every command reads as it reads the directory, and that can be read in part. The directory stays.

Exit status: 0; 1 when parts are damaged and were left out; 2 on wrong usage.`,
		Args: args(1, "one trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			if out == "" {
				out = strings.TrimSuffix(strings.TrimRight(a[0], "/"), ".prophet") + ".packed.prophet"
			}
			if err := free(out, force); err != nil {
				return err
			}
			t, live, err := open(a[0])
			if err != nil {
				return err
			}
			defer t.Close()
			if live {
				return usage("%s is being recorded; it can be packed when it has ended", a[0])
			}
			p := term.NewProgress("packing " + a[0])
			res, err := t.Pack(out, jobs, p.Set)
			p.Done()
			if err != nil {
				return err
			}
			damage := append(t.Damage, res.Damaged...)
			fmt.Printf("%s: %s\n", trace.Clean(out), bytesText(res.Bytes))
			if len(damage) > 0 {
				sayDamage(damage, len(damage))
				return &status{exitDamaged, nil}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the file to make (default NAME.packed.prophet)")
	c.Flags().BoolVar(&force, "force", false, "replace a file of that name")
	jobsFlag(c, &jobs)
	return c
}

// free says whether a name can be written to.
func free(path string, force bool) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !force:
		return usage("%s exists; use -o with another name, or --force to replace it", path)
	case !st.Mode().IsRegular():
		return usage("%s is not a regular file, and is not replaced", path)
	}
	return nil
}

func unpackCmd() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "unpack TRACE",
		Short: "Make a directory of a packed trace",
		Long: `Makes the directory that was packed.

Exit status: 0; 1 when parts are damaged and were left out; 2 on wrong usage.`,
		Args: args(1, "one packed trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			if out == "" {
				base := strings.TrimSuffix(a[0], ".prophet")
				if out = strings.TrimSuffix(base, ".packed") + ".prophet"; out == a[0] {
					out = base + ".unpacked.prophet"
				}
			}
			if _, err := os.Lstat(out); err == nil {
				return usage("%s exists; use -o with another name", out)
			}
			t, _, err := open(a[0])
			if err != nil {
				return err
			}
			defer t.Close()
			damage := t.Damage
			p := term.NewProgress("unpacking " + a[0])
			err = t.Unpack(out, func(e error) { damage = append(damage, e) }, p.Set)
			p.Done()
			if err != nil {
				return err
			}
			fmt.Println(trace.Clean(out))
			if len(damage) > 0 {
				sayDamage(damage, len(damage))
				return &status{exitDamaged, nil}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the directory to make")
	return c
}
