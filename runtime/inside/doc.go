// Package inside makes the surroundings of a re-execution: a private view of the file system in which everything is as
// it was before the recorded run and where writes stay, with process ids, System V objects and /proc of its own.
//
// plan.go and mounts.go are pure: from what the trace says about files, and from what is mounted, they say what has to
// be restored and what is to be mounted where. plant.go fills the upper layers, stage.go runs inside as process 1, and
// world.go starts, watches and removes it all. Nothing here writes outside of the world's own directory.
package inside
