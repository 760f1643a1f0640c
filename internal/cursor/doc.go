// Package cursor is what a cursor does without the type of its documents: it fetches batches, tells
// servers to forget cursors, keeps to the timeouts and their modes, tails, lets servers stream, and
// resumes change streams (specifications: find, getMore and killCursors; Client Side Operations
// Timeout, "Cursors"; Change Streams). A Registry knows the open cursors of a client. Every command
// goes through package exec.
package cursor
