package kerberos

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

// This file reads credential caches, the files that kinit writes. The library's reader takes memory
// by the lengths that stand in a file, whether or not the file is that long: a damaged one would
// end the process.

// cacheEntry is a ticket of a cache, with its key.
type cacheEntry struct {
	server  service
	key     types.EncryptionKey
	expires time.Time
	ticket  []byte
}

var errCacheCutOff = errors.New("it ends within an entry: it is damaged, or was being written")

// parseCCache returns the owner and the tickets of a credential cache. The format, versions 1 to 4,
// is that of MIT's documentation ("Credential cache file format"); Heimdal's is the same.
func parseCCache(data []byte) (owner service, entries []cacheEntry, err error) {
	if len(data) < 2 || data[0] != 5 || data[1] < 1 || data[1] > 4 {
		return service{}, nil, errors.New("it does not begin with the number 5 and a version from 1 to 4")
	}
	r := cacheReader{rest: data[2:], version: data[1], order: binary.BigEndian}
	if r.version < 3 {
		r.order = binary.NativeEndian
	}
	if r.version == 4 {
		r.take(r.number(2)) // of how much the KDC's clock is ahead, which only tells libraries
	}
	owner = r.principal()
	for !r.failed && len(r.rest) > 0 {
		entries = append(entries, r.credential())
	}
	if r.failed {
		return service{}, nil, errCacheCutOff
	}
	return owner, entries, nil
}

// cacheReader reads values off the front of a cache. Beyond its end, it fails and reads zeros.
type cacheReader struct {
	rest    []byte
	version byte
	order   interface {
		Uint16([]byte) uint16
		Uint32([]byte) uint32
	}
	failed bool
}

func (r *cacheReader) take(n int) []byte {
	if n > len(r.rest) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// number reads an unsigned number of 1, 2 or 4 bytes.
func (r *cacheReader) number(size int) int {
	b := r.take(size)
	switch len(b) {
	case 1:
		return int(b[0])
	case 2:
		return int(r.order.Uint16(b))
	case 4:
		return int(r.order.Uint32(b))
	}
	return 0
}

// data reads bytes that their number stands before.
func (r *cacheReader) data() []byte { return r.take(r.number(4)) }

func (r *cacheReader) principal() service {
	if r.version > 1 {
		r.number(4) // the type of the name
	}
	parts := r.number(4)
	if r.version == 1 {
		parts-- // the realm counts as one
	}
	s := service{realm: string(r.data())}
	var names []string
	for i := 0; i < parts && !r.failed; i++ {
		names = append(names, string(r.data()))
	}
	s.name = strings.Join(names, "/")
	return s
}

func (r *cacheReader) credential() cacheEntry {
	r.principal() // the client
	e := cacheEntry{server: r.principal()}
	e.key.KeyType = int32(r.number(2))
	if r.version == 3 {
		r.number(2) // the same again
	}
	e.key.KeyValue = r.data()
	r.take(8)                                    // when it was issued, and from when it is valid
	e.expires = time.Unix(int64(r.number(4)), 0) // unsigned, so that it reaches to 2106
	r.take(4 + 1 + 4)                            // until when it can be renewed, for users, flags
	for range 2 {                                // addresses, authorization data
		for n := r.number(4); n > 0 && !r.failed; n-- {
			r.number(2)
			r.data()
		}
	}
	e.ticket = r.data()
	r.data() // the second ticket
	return e
}

// grantingTicket returns, of the tickets of a cache, the one that grants others and is valid
// longest.
func grantingTicket(entries []cacheEntry, realm string) (t *ticket, err error) {
	var best *cacheEntry
	for i, e := range entries {
		if e.server == (service{"krbtgt/" + realm, realm}) && (best == nil || e.expires.After(best.expires)) {
			best = &entries[i]
		}
	}
	if best == nil {
		return nil, nil
	}
	t = &ticket{key: best.key, expires: best.expires}
	if !t.valid() {
		return t, nil
	}
	defer recovered(&err, "%v")
	return t, t.ticket.Unmarshal(best.ticket)
}
