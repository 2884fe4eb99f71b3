// Package manual makes man pages and shell completions of a tree of commands, so that what is installed says what the
// program says itself.
//
// A command's help is text: paragraphs; lines that are indented stand as they are (examples, tables); a paragraph that
// begins with "Exit status" is a section of its own.
package manual

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command is the hidden command that writes all of it below a directory that is laid out as PREFIX/share is.
func Command(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "manual DIR", Short: "Write man pages and completions", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, a []string) error { return Write(root, a[0]) },
	}
}

// Write writes a page for each command and the completions of three shells below dir.
func Write(root *cobra.Command, dir string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	name := root.Name()
	put := func(path string, write func(w io.Writer) error) error {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		return os.WriteFile(path, b.Bytes(), 0o644)
	}
	for _, c := range pages(root) {
		err := put(filepath.Join("man", "man1", pageName(c)+".1"), func(w io.Writer) error {
			_, err := w.Write(Page(c))
			return err
		})
		if err != nil {
			return err
		}
	}
	for path, write := range map[string]func(io.Writer) error{
		"bash-completion/completions/" + name:         func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh/site-functions/_" + name:                 root.GenZshCompletion,
		"fish/vendor_completions.d/" + name + ".fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		if err := put(path, write); err != nil {
			return err
		}
	}
	return nil
}

// pages are the commands that have one: not the hidden ones, nor what cobra adds.
func pages(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			list = append(list, pages(sub)...)
		}
	}
	return list
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Page is the man page of one command.
func Page(c *cobra.Command) []byte {
	p := &page{}
	name := pageName(c)
	p.line(`.TH %s 1 "" "Prophet %s" "Prophet"`, strings.ToUpper(escape(name)), escape(c.Root().Version))
	p.line(".SH NAME")
	p.line(`%s \- %s`, escape(name), escape(strings.ToLower(c.Short[:1])+c.Short[1:]))
	p.line(".SH SYNOPSIS")
	if c.Runnable() {
		p.line(".B %s", escape(c.UseLine()))
	}
	if c.HasAvailableSubCommands() {
		if c.Runnable() {
			p.line(".br")
		}
		p.line(".B %s", escape(c.CommandPath()+" COMMAND [ARGUMENTS]"))
	}
	p.line(".SH DESCRIPTION")
	text, status := c.Long, ""
	if text == "" {
		text = c.Short + "."
	}
	if i := strings.Index("\n\n"+text, "\n\nExit status"); i >= 0 {
		text, status = text[:i], text[i:]
		if j := strings.Index(status, "\n\n"); j >= 0 {
			text, status = text+status[j:], status[:j]
		}
	}
	p.text(text)
	p.commands(c)
	p.flags("OPTIONS", c.NonInheritedFlags())
	p.flags("OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if status != "" {
		p.line(".SH EXIT STATUS")
		_, after, _ := strings.Cut(status, " status")
		p.text(strings.TrimLeft(after, ": "))
	}
	if c.Example != "" {
		p.line(".SH EXAMPLES")
		p.text(c.Example)
	}
	p.line(".SH SEE ALSO")
	p.seeAlso(c)
	return p.b.Bytes()
}

type page struct{ b bytes.Buffer }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// text sets paragraphs, and what is indented as it is.
func (p *page) text(s string) {
	asIs, fresh := false, true
	for line := range strings.Lines(strings.Trim(s, "\n")) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "  ")
		switch {
		case line == "":
			fresh = true
			continue
		case indented && !asIs:
			p.line(".PP\n.RS 4\n.nf")
			asIs = true
		case indented && fresh:
			p.line("")
		case !indented && asIs:
			p.line(".fi\n.RE\n.PP")
			asIs = false
		case fresh && !indented:
			p.line(".PP")
		}
		fresh = false
		p.line("%s", escape(strings.TrimPrefix(line, "  ")))
	}
	if asIs {
		p.line(".fi\n.RE")
	}
}

func (p *page) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	p.line(".SH COMMANDS")
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			p.line(".TP\n.B %s\n%s", escape(sub.Name()), escape(sub.Short))
		}
	}
}

func (p *page) flags(head string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	p.line(".SH %s", head)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		what, usage := pflag.UnquoteUsage(f)
		names := `\fB` + escape("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			names = `\fB` + escape("-"+f.Shorthand) + `\fR, ` + names
		}
		if what != "" {
			names += ` \fI` + escape(what) + `\fR`
		}
		if d := f.DefValue; d != "" && d != "false" && d != "[]" && d != "0" && d != "0s" && !strings.Contains(usage, "default") {
			usage += " (default " + d + ")"
		}
		p.line(".TP\n%s\n%s", names, escape(usage))
	})
}

func (p *page) seeAlso(c *cobra.Command) {
	var list []string
	for _, other := range pages(c.Root()) {
		if other != c && (other == c.Parent() || c.Parent() == nil || other.Parent() == c.Parent()) {
			list = append(list, pageName(other))
		}
	}
	if c.Root().Name() == "prophet" {
		list = append(list, "replayd")
	} else {
		list = append(list, "prophet")
	}
	for i := range list {
		list[i] = ".BR " + escape(list[i]) + " (1),"
	}
	p.line("%s", strings.Join(append(list, ".BR libprophet (7)"), "\n"))
}

// escape makes text that troff shows as it is.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "'", `\(aq`, "`", `\(ga`, "~", `\(ti`, "^", `\(ha`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
