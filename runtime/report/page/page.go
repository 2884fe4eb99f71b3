// Package page makes a report a page: one file that any browser opens from the disk, with all that it needs in it. It
// asks no network for anything, and a policy in the page itself forbids it to. What the program of the trace chose (names
// of files, labels, arguments) is in it as compressed data, which the page shows as text, and escaped where it is in the
// page's own text.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"prophet/runtime/report"
)

var (
	//go:embed style.css
	style string
	//go:embed base.js
	baseJS string
	//go:embed table.js
	tableJS string
	//go:embed timeline.js
	timelineJS string
	//go:embed predict.js
	predictJS string
	//go:embed report.js
	reportJS string
	//go:embed diff.js
	diffJS string
	//go:embed report.html
	reportHTML string
	//go:embed diff.html
	diffHTML string
)

var (
	reportBody = template.Must(template.New("report").Funcs(funcs).Parse(reportHTML))
	diffBody   = template.Must(template.New("diff").Funcs(funcs).Parse(diffHTML))
)

// block is data in the page: compressed, in letters that mean nothing to HTML.
type block struct {
	id   string
	data []byte
}

// Write writes the page of one report.
func Write(w io.Writer, r *report.Report) error {
	var body bytes.Buffer
	if err := reportBody.Execute(&body, r); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	model, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	blocks := []block{{"model", model}}
	if r.Timeline != nil {
		blocks = append(blocks, block{"lines", r.Timeline.Data})
	}
	return write(w, r.Run.Command, body.String(), blocks, baseJS, tableJS, timelineJS, predictJS, reportJS)
}

// WriteDiff writes the page of what differs between two sides.
func WriteDiff(w io.Writer, d *report.Diff) error {
	var body bytes.Buffer
	if err := diffBody.Execute(&body, d); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	model, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return write(w, d.A.Command+" against "+d.B.Command, body.String(), []block{{"model", model}}, baseJS, tableJS, diffJS)
}

// write puts a page together. The policy names what may run by its hash, so nothing else does.
func write(w io.Writer, title, body string, blocks []block, scripts ...string) error {
	script := "\"use strict\";\n" + strings.Join(scripts, "\n")
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>%s · Prophet</title>
<style>%s</style>
</head>
`, sum(script), sum(style), template.HTMLEscapeString(title), style)
	b.WriteString(body)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	for _, d := range blocks {
		if _, err := fmt.Fprintf(w, "<script type=\"application/gzip\" id=\"%s\">", d.id); err != nil {
			return err
		}
		letters := base64.NewEncoder(base64.StdEncoding, w)
		z, _ := gzip.NewWriterLevel(letters, 7)
		if _, err := z.Write(d.data); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		if err := letters.Close(); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "</script>\n"); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "<script>%s</script>\n</body>\n</html>\n", script)
	return err
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(h[:])
}
