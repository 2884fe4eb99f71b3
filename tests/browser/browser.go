// Package browser drives a headless Chromium over the DevTools protocol, by a pair of pipes: what the tests of pages
// need of it, and no dependency.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Browser is a running Chromium.
type Browser struct {
	cmd     *exec.Cmd
	profile string
	out     *os.File
	mu      sync.Mutex
	next    int
	answers map[int]chan answer
	pages   map[string]*Page
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

type message struct {
	ID        int
	Method    string
	SessionID string
	Params    json.RawMessage
	answer
}

// patience is how long any one thing may take.
const patience = 60 * time.Second

// Start starts Chromium with a profile of its own.
func Start() (*Browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w (see tests/packages)", err)
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &Browser{profile: profile, out: out, answers: map[int]chan answer{}, pages: map[string]*Page{}}
	b.cmd = exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--mute-audio", "--force-color-profile=srgb",
		"--user-data-dir="+profile, "about:blank")
	b.cmd.ExtraFiles = []*os.File{in, to} // 3 and 4
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	in.Close()
	to.Close()
	go b.read(from)
	return b, nil
}

// Close ends Chromium and removes its profile.
func (b *Browser) Close() {
	b.call("", "Browser.close", nil, nil)
	done := make(chan struct{})
	go func() { b.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		b.cmd.Process.Kill()
		<-done
	}
	b.out.Close()
	os.RemoveAll(b.profile)
}

func (b *Browser) read(from *os.File) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			for id, c := range b.answers {
				delete(b.answers, id)
				close(c)
			}
			b.mu.Unlock()
			from.Close()
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		c, p := b.answers[m.ID], b.pages[m.SessionID]
		delete(b.answers, m.ID)
		b.mu.Unlock()
		if m.ID != 0 && c != nil {
			c <- m.answer
		} else if p != nil {
			p.event(m.Method, m.Params)
		}
	}
}

func (b *Browser) call(session, method string, params, result any) error {
	c := make(chan answer, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.answers[id] = c
	if params == nil {
		params = struct{}{}
	}
	text, err := json.Marshal(struct {
		ID        int    `json:"id"`
		Method    string `json:"method"`
		SessionID string `json:"sessionId,omitempty"`
		Params    any    `json:"params"`
	}{id, method, session, params})
	if err == nil {
		_, err = b.out.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case a, ok := <-c:
		switch {
		case !ok:
			return fmt.Errorf("%s: the browser is gone", method)
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case result != nil:
			return json.Unmarshal(a.Result, result)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer in %v", method, patience)
	}
}

// Page is a tab.
type Page struct {
	b       *Browser
	session string
	loaded  chan struct{}
	mu      sync.Mutex
	errors  []string
	asked   []string
}

// Page opens a tab.
func (b *Browser) Page() (*Page, error) {
	var target struct{ TargetID string }
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{b: b, session: attached.SessionID, loaded: make(chan struct{}, 8)}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, m := range []string{"Page.enable", "Runtime.enable", "Log.enable", "Network.enable", "Page.bringToFront"} {
		if err := p.do(m, nil, nil); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Page) do(method string, params, result any) error {
	return p.b.call(p.session, method, params, result)
}

func (p *Page) event(method string, params json.RawMessage) {
	switch method {
	case "Page.loadEventFired":
		p.loaded <- struct{}{}
	case "Runtime.exceptionThrown":
		p.fault(params)
	case "Runtime.consoleAPICalled":
		var c struct{ Type string }
		if json.Unmarshal(params, &c); c.Type == "error" || c.Type == "warning" || c.Type == "assert" {
			p.fault(params)
		}
	case "Log.entryAdded":
		p.fault(params)
	case "Network.requestWillBeSent":
		var n struct{ Request struct{ URL string } }
		json.Unmarshal(params, &n)
		p.mu.Lock()
		p.asked = append(p.asked, n.Request.URL)
		p.mu.Unlock()
	}
}

func (p *Page) fault(params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, string(params[:min(len(params), 2000)]))
}

// Faults are exceptions, and what the console and the log were told.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// Asked are the addresses that the page asked for, its own among them.
func (p *Page) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// Size makes the window that large.
func (p *Page) Size(w, h int, phone bool) error {
	return p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": w, "height": h, "deviceScaleFactor": 1, "mobile": phone}, nil)
}

// Media sets what the system says of itself: prefers-color-scheme, dark.
func (p *Page) Media(features ...string) error {
	list := []map[string]string{}
	for i := 0; i+1 < len(features); i += 2 {
		list = append(list, map[string]string{"name": features[i], "value": features[i+1]})
	}
	return p.do("Emulation.setEmulatedMedia", map[string]any{"features": list}, nil)
}

// Print shows the page as it is printed.
func (p *Page) Print() error {
	return p.do("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
}

// Open goes to a file and waits until its script has done its first work: until <html data-ready> is there.
func (p *Page) Open(file string) error {
	if err := p.do("Page.navigate", map[string]any{"url": "file://" + file}, nil); err != nil {
		return err
	}
	select {
	case <-p.loaded:
	case <-time.After(patience):
		return fmt.Errorf("%s was not loaded in %v", file, patience)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ready bool
		if err := p.Eval(`document.documentElement.dataset.ready === "true"`, &ready); err != nil {
			return err
		}
		if ready {
			return p.Settle()
		}
		if f := p.Faults(); len(f) > 0 {
			return fmt.Errorf("%s: %s", file, strings.Join(f, "\n"))
		}
	}
	return fmt.Errorf("%s did not become ready in %v", file, patience)
}

// Settle waits until what was asked for has been drawn.
func (p *Page) Settle() error {
	return p.Eval(`new Promise(ok => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => ok(true))), 250))`, nil)
}

// Eval evaluates an expression, waits for it when it is a promise, and puts its value into result.
func (p *Page) Eval(expr string, result any) error {
	var v struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := p.do("Runtime.evaluate", map[string]any{"expression": expr, "awaitPromise": true, "returnByValue": true}, &v); err != nil {
		return err
	}
	if e := v.ExceptionDetails; e != nil {
		return fmt.Errorf("%s %s", e.Text, e.Exception.Description)
	}
	if result == nil || len(v.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(v.Result.Value, result)
}

// Key presses a key where the focus is, as a keyboard does: by its name as scripts see it, such as ArrowLeft or +; Shift+Tab too.
func (p *Page) Key(key string) error {
	name, mod := key, 0
	if rest, ok := strings.CutPrefix(key, "Shift+"); ok {
		name, mod = rest, 8
	}
	down := map[string]any{"type": "keyDown", "key": name, "modifiers": mod}
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	if c := codes[name]; c != 0 {
		down["windowsVirtualKeyCode"] = c
	}
	switch {
	case name == "Enter":
		down["text"] = "\r"
	case len(name) == 1:
		down["text"] = name
	}
	if err := p.do("Input.dispatchKeyEvent", down, nil); err != nil {
		return err
	}
	return p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "modifiers": mod, "windowsVirtualKeyCode": codes[name]}, nil)
}

// Node is what a screen reader is told of an element.
type Node struct {
	Role, Name, Description, Value string
	Props                          map[string]any // focusable, expanded, live, valuetext …
}

// Accessible are the nodes of the tree that screen readers are given, but for those that it leaves out.
func (p *Page) Accessible() ([]Node, error) {
	type value struct{ Value any }
	var tree struct {
		Nodes []struct {
			Ignored                        bool
			Role, Name, Description, Value value
			Properties                     []struct {
				Name  string
				Value value
			}
		}
	}
	if err := p.do("Accessibility.getFullAXTree", nil, &tree); err != nil {
		return nil, err
	}
	text := func(v value) string {
		if v.Value == nil {
			return ""
		}
		return fmt.Sprint(v.Value)
	}
	var list []Node
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		props := map[string]any{}
		for _, x := range n.Properties {
			props[x.Name] = x.Value.Value
		}
		list = append(list, Node{text(n.Role), text(n.Name), text(n.Description), text(n.Value), props})
	}
	return list, nil
}

// Type types text where the focus is.
func (p *Page) Type(text string) error {
	return p.do("Input.insertText", map[string]any{"text": text}, nil)
}

// Mouse sends one event of the mouse: mouseMoved, mousePressed, mouseReleased.
func (p *Page) Mouse(kind string, x, y float64) error {
	return p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
}

// Wheel turns the wheel; ctrl: with the control key.
func (p *Page) Wheel(x, y, dy float64, ctrl bool) error {
	mod := 0
	if ctrl {
		mod = 2
	}
	return p.do("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": dy, "modifiers": mod}, nil)
}

// Screenshot writes a picture of what shows, or of the whole page.
func (p *Page) Screenshot(file string, whole bool) error {
	var v struct{ Data string }
	if err := p.do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &v); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(v.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}
