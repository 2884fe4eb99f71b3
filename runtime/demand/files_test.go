package demand

import "testing"

// A first read that is late does not make a file cold that the run then writes; reads that all come from the disk do.
func TestCold(t *testing.T) {
	warm, cold, once := fileState{}, fileState{}, fileState{}
	warm.read(4096, 65000)
	cold.read(4096, 65000)
	warm.changed, cold.changed = true, true
	for range 1000 {
		warm.read(4096, 1800)
		cold.read(4096, 65000)
	}
	once.read(4096, 65000)
	if warm.cold() || !cold.cold() || !once.cold() {
		t.Errorf("warm %v, cold %v, once %v", warm.cold(), cold.cold(), once.cold())
	}
}
