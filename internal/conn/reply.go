package conn

import (
	"sync"

	"allium/internal/wire"
)

// Reply is a server's message. Its parts share a pooled buffer.
type Reply struct {
	wire.Msg
	Size int // bytes of the message after decompression, header included
	buf  *buffer
}

var replyPool sync.Pool

func newReply() *Reply {
	if r, ok := replyPool.Get().(*Reply); ok {
		return r
	}
	return new(Reply)
}

// Release gives the reply's memory back. Neither the reply nor anything that shares its memory may
// be used afterwards. A reply that is never released is left to the garbage collector. Release does
// nothing on nil.
func (r *Reply) Release() {
	if r == nil || r.buf == nil {
		return
	}
	b := r.buf
	*r = Reply{}
	replyPool.Put(r)
	putBuffer(b)
}
