package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func tree() *cobra.Command {
	root := &cobra.Command{Use: "prophet", Short: "Look", Version: "1.2", Long: "One.\n\n.Two's\nline\n\n  as it is\n  -x\n\n  far\n\nThree.\n\nExit status: 0 good.\n\nFour."}
	sub := &cobra.Command{Use: "see THING", Short: "See a thing", Run: func(*cobra.Command, []string) {}, Example: "  prophet see \\x"}
	sub.Flags().IntP("jobs", "j", 3, "how `many`")
	sub.Flags().String("plain", "", "no more")
	secret := &cobra.Command{Use: "hidden", Hidden: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(sub, secret, Command(root))
	return root
}

const wantRoot = `.TH PROPHET 1 "" "Prophet 1.2" "Prophet"
.SH NAME
prophet \- look
.SH SYNOPSIS
.B prophet COMMAND [ARGUMENTS]
.SH DESCRIPTION
.PP
One.
.PP
\&.Two\(aqs
line
.PP
.RS 4
.nf
as it is
\-x

far
.fi
.RE
.PP
Three.
.PP
Four.
.SH COMMANDS
.TP
.B see
See a thing
.SH EXIT STATUS
.PP
0 good.
.SH SEE ALSO
.BR prophet\-see (1),
.BR replayd (1),
.BR libprophet (7)
`

const wantSub = `.TH PROPHET\-SEE 1 "" "Prophet 1.2" "Prophet"
.SH NAME
prophet\-see \- see a thing
.SH SYNOPSIS
.B prophet see THING [flags]
.SH DESCRIPTION
.PP
See a thing.
.SH OPTIONS
.TP
\fB\-j\fR, \fB\-\-jobs\fR \fImany\fR
how many (default 3)
.TP
\fB\-\-plain\fR \fIstring\fR
no more
.SH EXAMPLES
.PP
.RS 4
.nf
prophet see \ex
.fi
.RE
.SH SEE ALSO
.BR prophet (1),
.BR replayd (1),
.BR libprophet (7)
`

func TestPages(t *testing.T) {
	root := tree()
	if got := string(Page(root)); got != wantRoot {
		t.Errorf("got\n%s", got)
	}
	if got := string(Page(root.Commands()[2])); got != wantSub {
		t.Errorf("got\n%s", got)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(tree(), dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, strings.TrimPrefix(path, dir))
		}
		return err
	})
	want := "/bash-completion/completions/prophet /fish/vendor_completions.d/prophet.fish /man/man1/prophet-see.1 /man/man1/prophet.1 /zsh/site-functions/_prophet"
	if strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}
