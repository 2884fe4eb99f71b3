package demand

import (
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// op is how the calls of a row are issued.
type op struct {
	code   uint16
	named  int  // how many names it is about
	choice bool // its result decides what comes next
}

// What the compiler does with a call that is no operation of the engine's.
const (
	opCloseRange = 1000 + iota
	opReset
	opChdir
	opExec
	opSystem
	opSleepFor
	opPoll
	opCondwait
	opWaitpid
	opExitThread
	opMmap
	opSends
	opTakes
	opSignal
)

// families is which calls are issued alike. What is not here costs the CPU time that it took, as far as that is not waiting.
var families = map[string]op{
	"pthread_mutex_lock mtx_lock":                                                 {code: cabi.OpLock},
	"pthread_mutex_unlock mtx_unlock":                                             {code: cabi.OpUnlock},
	"pthread_mutex_trylock mtx_trylock":                                           {code: cabi.OpTrylock, choice: true},
	"pthread_mutex_timedlock pthread_mutex_clocklock mtx_timedlock":               {code: cabi.OpTimedlock, choice: true},
	"pthread_mutex_init mtx_init pthread_barrier_init sem_init sem_open":          {code: opReset},
	"pthread_rwlock_rdlock pthread_rwlock_timedrdlock pthread_rwlock_clockrdlock": {code: cabi.OpRdlock},
	"pthread_rwlock_wrlock pthread_rwlock_timedwrlock pthread_rwlock_clockwrlock": {code: cabi.OpWrlock},
	"pthread_rwlock_tryrdlock":                                                    {code: cabi.OpTryrdlock, choice: true},
	"pthread_rwlock_trywrlock":                                                    {code: cabi.OpTrywrlock, choice: true},
	"pthread_rwlock_unlock":                                                       {code: cabi.OpRwunlock},
	"pthread_spin_lock":                                                           {code: cabi.OpSpinlock},
	"pthread_spin_trylock":                                                        {code: cabi.OpSpintry, choice: true},
	"pthread_spin_unlock":                                                         {code: cabi.OpSpinunlock},
	"pthread_barrier_wait":                                                        {code: cabi.OpBarrier},
	"sem_wait":                                                                    {code: cabi.OpSemwait},
	"sem_trywait":                                                                 {code: cabi.OpSemtry, choice: true},
	"sem_timedwait sem_clockwait":                                                 {code: cabi.OpSemtimed, choice: true},
	"sem_post":                                                                    {code: cabi.OpSempost},
	"pthread_cond_wait cnd_wait pthread_cond_timedwait pthread_cond_clockwait cnd_timedwait": {code: opCondwait},
	"pthread_cond_signal cnd_signal":       {code: cabi.OpSignal},
	"pthread_cond_broadcast cnd_broadcast": {code: cabi.OpBroadcast},

	"pthread_create thrd_create":                                                     {code: cabi.OpCreate},
	"pthread_join thrd_join pthread_timedjoin_np pthread_clockjoin_np":               {code: cabi.OpJoin},
	"pthread_exit thrd_exit":                                                         {code: opExitThread},
	"fork _Fork vfork clone posix_spawn posix_spawnp popen _IO_popen forkpty daemon": {code: cabi.OpFork},
	"system":                                 {code: opSystem},
	"wait waitpid wait3 wait4 waitid pclose": {code: opWaitpid},
	"execve execv execvp execvpe execl execlp execle fexecve execveat": {code: opExec},
	"exit _exit _Exit quick_exit abort":                                {code: cabi.OpExit},

	"sleep usleep nanosleep clock_nanosleep thrd_sleep": {code: opSleepFor},
	"sched_yield thrd_yield pthread_yield":              {code: cabi.OpYield},

	"open open_2 openat openat_2 creat fopen freopen": {code: cabi.OpOpen, named: 1, choice: true},
	"close _IO_file_close":                            {code: cabi.OpClose},
	"close_range closefrom":                           {code: opCloseRange},
	"read readv _IO_file_read":                        {code: cabi.OpRead},
	"write writev _IO_file_write":                     {code: cabi.OpWrite},
	"pread preadv preadv2 preadv64v2":                 {code: cabi.OpPread},
	"pwrite pwritev pwritev2 pwritev64v2":             {code: cabi.OpPwrite},
	"lseek _IO_file_seek":                             {code: cabi.OpLseek},
	"fsync":                                           {code: cabi.OpFsync},
	"fdatasync":                                       {code: cabi.OpFdatasync},
	"syncfs sync":                                     {code: cabi.OpSyncfs},
	"sync_file_range":                                 {code: cabi.OpSyncrange},
	"ftruncate":                                       {code: cabi.OpTruncate},
	"fallocate posix_fallocate":                       {code: cabi.OpFallocate},
	"fstat fxstat fstatvfs":                           {code: cabi.OpFstat},
	"posix_fadvise readahead":                         {code: cabi.OpFadvise},
	"dup dup2 dup3":                                   {code: cabi.OpDup},
	"fcntl":                                           {code: cabi.OpFcntlLock, choice: true},
	"lockf":                                           {code: cabi.OpFcntlLock, choice: true},
	"flock":                                           {code: cabi.OpFlock, choice: true},
	"pipe pipe2":                                      {code: cabi.OpPipe},
	"socketpair":                                      {code: cabi.OpSocketpair},
	"stat lstat fstatat xstat lxstat statx":           {code: cabi.OpStat, named: 1, choice: true},
	"access eaccess euidaccess faccessat":             {code: cabi.OpAccess, named: 1, choice: true},
	"unlink unlinkat remove":                          {code: cabi.OpUnlink, named: 1, choice: true},
	"mkdir mkdirat":                                   {code: cabi.OpMkdir, named: 1},
	"rmdir":                                           {code: cabi.OpRmdir, named: 1},
	"rename renameat renameat2":                       {code: cabi.OpRename, named: 2},
	"link linkat":                                     {code: cabi.OpLink, named: 2},
	"truncate":                                        {code: cabi.OpTruncateName, named: 1},
	"sendfile":                                        {code: cabi.OpSendfile},
	"copy_file_range":                                 {code: cabi.OpCopyrange},
	"chdir fchdir":                                    {code: opChdir},
	"mmap":                                            {code: opMmap},

	"poll ppoll select pselect epoll_wait epoll_pwait epoll_pwait2": {code: opPoll},
	"recv recvfrom recvmsg": {code: cabi.OpTake},
	"send sendto sendmsg":   {code: cabi.OpGive},
	"recvmmsg":              {code: opTakes},
	"sendmmsg":              {code: opSends},
	"accept accept4":        {code: cabi.OpAccept},
	"connect":               {code: cabi.OpConnect},
	"shutdown":              {code: cabi.OpShutdown},

	"pthread_kill pthread_sigqueue kill sigqueue sigwait sigwaitinfo sigtimedwait": {code: opSignal},
}

var opByCall = func() []*op {
	byName := map[string]*op{}
	for names, o := range families {
		for _, n := range strings.Fields(names) {
			byName[n] = &o
		}
	}
	var list []*op
	for i := range cabi.Calls {
		c := &cabi.Calls[i]
		for int(c.ID) >= len(list) {
			list = append(list, nil)
		}
		list[c.ID] = byName[plainName(c.Name)]
	}
	return list
}()

// plainName is a call's name without what tells its variants apart.
func plainName(n string) string {
	n = strings.TrimPrefix(n, "__")
	n = strings.TrimSuffix(n, "_chk")
	return strings.TrimSuffix(n, "64")
}

func opOf(row *trace.Row) *op {
	if row == nil || int(row.ID) >= len(opByCall) {
		return nil
	}
	return opByCall[row.ID]
}
