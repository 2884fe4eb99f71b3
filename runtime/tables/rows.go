package tables

// Rows. The tags name the columns, say how parquet packs them and what they are; cells lists them in the same order for CSV,
// which a test holds. Columns are appended, never renamed or given another meaning. None is ever null, for CSV knows no null, and
// parquet-go writes zero values of optional columns sometimes as null and sometimes not (its issue 154).

// Event is a row of events.
type Event struct {
	Thread     string `parquet:"thread,dict" doc:"thread, as in threads"`
	Process    string `parquet:"process,dict" doc:"its process, as in processes"`
	Event      int64  `parquet:"event,delta" doc:"number in the thread, from 0"`
	BeginNS    int64  `parquet:"begin_ns,delta" doc:"when the call began, since the start of the run"`
	DurationNS int64  `parquet:"duration_ns" doc:"how long it took; 0: it cannot block and has one time stamp"`
	Class      string `parquet:"class,dict" doc:"disk, net, sync, thread, time, random, shape, signal, memory, stdio"`
	Call       string `parquet:"call,dict" doc:"the function that was called"`
	Object     string `parquet:"object,dict" doc:"what it acted on, as in objects"`
	Target     string `parquet:"target,dict" doc:"what a descriptor was then: a path, the two ends of a connection, a pipe"`
	Result     int64  `parquet:"result" doc:"what it returned; -errno where it failed by errno; 1 and -errno for a pointer and NULL"`
	Error      string `parquet:"error,dict" doc:"name of the error, as ENOENT; '': none"`
	BytesIn    int64  `parquet:"bytes_in" doc:"bytes that it read or received"`
	BytesOut   int64  `parquet:"bytes_out" doc:"bytes that it wrote or sent"`
	Place      int64  `parquet:"place" doc:"place in the object's order, from 1; 0: it took none"`
	Waited     bool   `parquet:"waited" doc:"the object was held by another when the call began"`
	Path       string `parquet:"path,dict" doc:"path or text that it was given"`
	Arguments  string `parquet:"arguments,dict" doc:"further arguments, name=value"`
	CallSite   string `parquet:"call_site,dict" doc:"module+offset of the call"`
	Stack      int64  `parquet:"stack" doc:"who called the call site, as in stacks; 0: no stack was taken"`
}

func (r *Event) cells(c *cells) {
	c.text(r.Thread)
	c.text(r.Process)
	c.num(r.Event)
	c.num(r.BeginNS)
	c.num(r.DurationNS)
	c.text(r.Class)
	c.text(r.Call)
	c.text(r.Object)
	c.text(r.Target)
	c.num(r.Result)
	c.text(r.Error)
	c.num(r.BytesIn)
	c.num(r.BytesOut)
	c.num(r.Place)
	c.flag(r.Waited)
	c.text(r.Path)
	c.text(r.Arguments)
	c.text(r.CallSite)
	c.num(r.Stack)
}

// Link is a row of links.
type Link struct {
	Kind       string `parquet:"kind,dict" doc:"lock, wake, post, barrier, once, data, connect, start, exit"`
	FromThread string `parquet:"from_thread,dict" doc:"who let the other go on"`
	FromEvent  int64  `parquet:"from_event" doc:"by which event; of exit its last one"`
	CauseNS    int64  `parquet:"cause_ns" doc:"when"`
	ToThread   string `parquet:"to_thread,dict" doc:"who could go on"`
	ToEvent    int64  `parquet:"to_event" doc:"which event waited for that; of start 0, its first one"`
	EffectNS   int64  `parquet:"effect_ns" doc:"when it could"`
	Object     string `parquet:"object,dict" doc:"through which object"`
	HeldEvent  int64  `parquet:"held_event" doc:"of lock: the event by which from_thread had taken it; -1: of others, or not known"`
	HeldNS     int64  `parquet:"held_ns" doc:"of lock: since when from_thread had it"`
	HeldAt     string `parquet:"held_at,dict" doc:"of lock: the call site where from_thread had taken it"`
	Bytes      int64  `parquet:"bytes" doc:"of data: how many bytes, or messages"`
}

func (r *Link) cells(c *cells) {
	c.text(r.Kind)
	c.text(r.FromThread)
	c.num(r.FromEvent)
	c.num(r.CauseNS)
	c.text(r.ToThread)
	c.num(r.ToEvent)
	c.num(r.EffectNS)
	c.text(r.Object)
	c.num(r.HeldEvent)
	c.num(r.HeldNS)
	c.text(r.HeldAt)
	c.num(r.Bytes)
}

// Object is a row of objects.
type Object struct {
	Object   string `parquet:"object" doc:"kind:thread#number, the same in the next run; in a forked process another one of that name"`
	Process  string `parquet:"process,dict" doc:"where it was used; shared objects have a row a process"`
	Kind     string `parquet:"kind,dict" doc:"mutex, rwlock, cond, sem, barrier, fd, stdio …"`
	Detail   string `parquet:"detail" doc:"what it was last known to be: a path, two ends, a place in shared memory"`
	FirstNS  int64  `parquet:"first_ns" doc:"when its first event began"`
	LastNS   int64  `parquet:"last_ns" doc:"when its last event ended"`
	Events   int64  `parquet:"events" doc:"how many events"`
	CallNS   int64  `parquet:"call_ns" doc:"time inside of calls"`
	Waits    int64  `parquet:"waits" doc:"events that found it held by another"`
	WaitNS   int64  `parquet:"wait_ns" doc:"time inside of those"`
	WaitMax  int64  `parquet:"wait_max_ns" doc:"the longest of those"`
	Place    int64  `parquet:"place" doc:"its highest place in order: how often it was taken"`
	BytesIn  int64  `parquet:"bytes_in" doc:"bytes read or received through it"`
	BytesOut int64  `parquet:"bytes_out" doc:"bytes written or sent through it"`
}

func (r *Object) cells(c *cells) {
	c.text(r.Object)
	c.text(r.Process)
	c.text(r.Kind)
	c.text(r.Detail)
	c.num(r.FirstNS)
	c.num(r.LastNS)
	c.num(r.Events)
	c.num(r.CallNS)
	c.num(r.Waits)
	c.num(r.WaitNS)
	c.num(r.WaitMax)
	c.num(r.Place)
	c.num(r.BytesIn)
	c.num(r.BytesOut)
}

// Thread is a row of threads.
type Thread struct {
	Thread  string `parquet:"thread" doc:"p0, p0/1 …: the same in the next run"`
	Process string `parquet:"process" doc:"its process, as in processes"`
	Number  int64  `parquet:"number" doc:"in this run"`
	TID     int64  `parquet:"tid" doc:"the kernel's id"`
	How     string `parquet:"how" doc:"main, created, forked, found"`
	Parent  string `parquet:"parent" doc:"the thread that created it"`
	Name    string `parquet:"name" doc:"the name that it was given last"`
	BeginNS int64  `parquet:"begin_ns" doc:"its first record"`
	EndNS   int64  `parquet:"end_ns" doc:"the end of its last event"`
	Events  int64  `parquet:"events" doc:"how many events"`
	CallNS  int64  `parquet:"call_ns" doc:"time inside of calls"`
	CPUNS   int64  `parquet:"cpu_ns" doc:"CPU time that it had used when that was last asked"`
}

func (r *Thread) cells(c *cells) {
	c.text(r.Thread)
	c.text(r.Process)
	c.num(r.Number)
	c.num(r.TID)
	c.text(r.How)
	c.text(r.Parent)
	c.text(r.Name)
	c.num(r.BeginNS)
	c.num(r.EndNS)
	c.num(r.Events)
	c.num(r.CallNS)
	c.num(r.CPUNS)
}

// Process is a row of processes.
type Process struct {
	Process    string `parquet:"process" doc:"p0, p0.1, p0.1+ …: the same in the next run"`
	Number     int64  `parquet:"number" doc:"in this run"`
	PID        int64  `parquet:"pid" doc:"the kernel's id"`
	PPID       int64  `parquet:"ppid" doc:"its parent's"`
	Parent     string `parquet:"parent" doc:"the process that made it, where that is of the run"`
	How        string `parquet:"how" doc:"root, forked, execed"`
	Exe        string `parquet:"exe" doc:"the program"`
	Cwd        string `parquet:"cwd" doc:"its directory at the start"`
	Command    string `parquet:"command" doc:"its arguments, with a space between them"`
	BeginNS    int64  `parquet:"begin_ns" doc:"its first record"`
	EndNS      int64  `parquet:"end_ns" doc:"the end of its last event, or its record of its end"`
	Exit       string `parquet:"exit" doc:"exit, quick, abort, exec, signal; '': it did not tell"`
	Status     int64  `parquet:"status" doc:"its exit status"`
	CPUNS      int64  `parquet:"cpu_ns" doc:"the kernel's count of its CPU time"`
	ReadBytes  int64  `parquet:"read_bytes" doc:"the kernel's count of bytes that it read"`
	WroteBytes int64  `parquet:"wrote_bytes" doc:"the kernel's count of bytes that it wrote"`
	PeakBytes  int64  `parquet:"peak_bytes" doc:"most resident memory that was seen"`
}

func (r *Process) cells(c *cells) {
	c.text(r.Process)
	c.num(r.Number)
	c.num(r.PID)
	c.num(r.PPID)
	c.text(r.Parent)
	c.text(r.How)
	c.text(r.Exe)
	c.text(r.Cwd)
	c.text(r.Command)
	c.num(r.BeginNS)
	c.num(r.EndNS)
	c.text(r.Exit)
	c.num(r.Status)
	c.num(r.CPUNS)
	c.num(r.ReadBytes)
	c.num(r.WroteBytes)
	c.num(r.PeakBytes)
}

// Module is a row of modules.
type Module struct {
	Process string `parquet:"process,dict" doc:"as in processes; a forked process has its parent's, too"`
	Path    string `parquet:"path,dict" doc:"the file that was mapped for execution"`
	BuildID string `parquet:"build_id,dict" doc:"in hex"`
	Low     string `parquet:"low" doc:"its lowest address, in hex"`
	Bytes   int64  `parquet:"bytes" doc:"how long the mapping is"`
}

func (r *Module) cells(c *cells) {
	c.text(r.Process)
	c.text(r.Path)
	c.text(r.BuildID)
	c.text(r.Low)
	c.num(r.Bytes)
}

// Stack is a row of stacks: one frame.
type Stack struct {
	Stack int64  `parquet:"stack,delta" doc:"number, from 1"`
	Frame int64  `parquet:"frame,delta" doc:"from 0, the innermost"`
	Site  string `parquet:"site,dict" doc:"module+offset of the return address; of samples, the first is where it ran"`
}

func (r *Stack) cells(c *cells) {
	c.num(r.Stack)
	c.num(r.Frame)
	c.text(r.Site)
}

// Sample is a row of samples.
type Sample struct {
	Thread string `parquet:"thread,dict" doc:"as in threads"`
	AtNS   int64  `parquet:"at_ns,delta" doc:"when"`
	CPUNS  int64  `parquet:"cpu_ns" doc:"CPU time that the thread had used"`
	Stack  int64  `parquet:"stack" doc:"where it was, as in stacks"`
}

func (r *Sample) cells(c *cells) {
	c.text(r.Thread)
	c.num(r.AtNS)
	c.num(r.CPUNS)
	c.num(r.Stack)
}

// Mark is a row of marks.
type Mark struct {
	Thread string `parquet:"thread,dict" doc:"as in threads"`
	AtNS   int64  `parquet:"at_ns,delta" doc:"when"`
	Kind   string `parquet:"kind,dict" doc:"point, begin, end"`
	Name   string `parquet:"name,dict" doc:"what the program called it"`
}

func (r *Mark) cells(c *cells) {
	c.text(r.Thread)
	c.num(r.AtNS)
	c.text(r.Kind)
	c.text(r.Name)
}
