package proto

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestRequests(t *testing.T) {
	rows := []struct {
		line string
		want string // "" when it is good
	}{
		{`{"id":1,"do":"status"}`, ""},
		{`{"do":"pause"}`, ""},
		{` {"id":3,"do":"run-to","thread":"p0/1","event":17} `, ""},
		{`{"do":"run-to","time_ns":5}`, ""},
		{`{"do":"run-to","mark":"here"}`, ""},
		{`{"do":"step"}`, ""},
		{`{"do":"step","thread":"p0","count":3}`, ""},
		{`{"do":"break","call":"write"}`, ""},
		{`{"do":"break","object":"p0:3","clear":true}`, ""},
		{`{"do":"break"}`, "one place"},
		{`{"do":"break","object":"a","call":"b"}`, "one place"},
		{`{"do":"run-to"}`, "one aim"},
		{`{"do":"run-to","event":3}`, "one aim"},
		{`{"do":"run-to","mark":"a","time_ns":1}`, "one aim"},
		{`{"do":"run-to","mark":"a","count":1}`, "run-to takes"},
		{`{"do":"pause","thread":"p0"}`, "no further fields"},
		{`{"do":"pause","now":true}`, "unknown field"},
		{`{"do":"step","count":99999999999999}`, "that many"},
		{`{"do":"fly"}`, "cannot be asked for"},
		{`{}`, "what to do"},
		{``, "not a request"},
		{`[]`, "not a request"},
		{`{"do":"pause"}{"do":"resume"}`, "one request"},
		{`{"do":"pause"} x`, "one request"},
		{`{"id":-1,"do":"pause"}`, "not a request"},
		{"{\"do\":\"pa\xffuse\"}", "UTF-8"},
		{`{"do":"break","call":"` + strings.Repeat("x", 300) + `"}`, "longer"},
		{`{"do":"` + strings.Repeat("x", 70000) + `"}`, "longer"},
	}
	for _, r := range rows {
		_, err := ParseRequest([]byte(r.line))
		if r.want == "" && err != nil || r.want != "" && (err == nil || !strings.Contains(err.Error(), r.want)) {
			t.Errorf("%.80s: %v, want %q", r.line, err, r.want)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Code != BadRequest) {
			t.Errorf("%.80s: %v has no code", r.line, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"id":1,"do":"status"}`, `{"do":"run-to","thread":"p0/1","event":17}`, `{"do":"break","object":"p0:3","clear":true}`, `{}`, `[`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseRequest(line)
		if err != nil {
			b, jerr := json.Marshal(Refuse(r.ID, err))
			if a, perr := ParseAnswer(b); jerr != nil || perr != nil || a.OK {
				t.Fatalf("the refusal %s of %q: %v %v", b, line, jerr, perr)
			}
			return
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRequest(b)
		if err != nil || again != r {
			t.Fatalf("%q reads %+v, then %+v (%v)", line, r, again, err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"id":1,"ok":true,"stop":{"reason":"paused"}}`, `{"id":2,"ok":false,"error":"x"}`, `{"hello":"prophet","v":1}`, `{"ok":true,"status":{"threads":[{}]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if a, err := ParseAnswer(line); err == nil {
			if b, err := json.Marshal(a); err != nil {
				t.Fatal(err)
			} else if _, err := ParseAnswer(b); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
		}
		ParseHello(line)
	})
}
