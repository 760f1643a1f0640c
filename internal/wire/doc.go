// Package wire writes and reads the MongoDB wire protocol: message headers, OP_MSG, OP_COMPRESSED,
// and OP_QUERY and OP_REPLY for mongotest. It works on bytes and does no I/O.
package wire
