package cabi

// Synchronisation: every acquisition has its place in its object's order (seq). IDs of this part start at 1.
var callsSync = []Call{
	{ID: 1, Name: "pthread_mutex_lock", Sig: "int pthread_mutex_lock(pthread_mutex_t *m)", Class: Sync, Body: Hand, Rec: "ret err; obj mutex m; f1 addr=m; seq", Reexec: "order", Issue: "same", Test: "mutex"},
	{ID: 2, Name: "pthread_mutex_unlock", Sig: "int pthread_mutex_unlock(pthread_mutex_t *m)", Class: Sync, Body: Hand, Rec: "ret err; obj mutex m; f1 addr=m", Reexec: "real", Issue: "same", Test: "mutex"},
	{ID: 3, Name: "pthread_mutex_trylock", Sig: "int pthread_mutex_trylock(pthread_mutex_t *m)", Class: Sync, Body: Hand, Rec: "ret err; obj mutex m; f1 addr=m; seq", Reexec: "order", Issue: "same", Test: "mutex"},
}
