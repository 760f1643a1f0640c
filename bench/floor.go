package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"allium/bson"
)

// This file has the floor of a task: what a program takes that makes the same exchanges and knows
// the bytes in advance. Allium does the task once, on connections that are recorded. The floor
// sends the recorded messages over connections of its own, reads as many replies, in the recorded
// order and on one goroutine, and makes of each reply what Task.Values does, by code that is
// written for it. Cursors, transaction numbers and the _ids of writes are put into the messages, so
// that a server does the same work each time. It does not read or write files.

// Floor does the exchanges of a task.
type Floor struct {
	Before func() error
	Do     func(n int) error
	Close  func() error
}

// WithFloors lets tasks have floors. Those who are asked for them do their tasks in databases of
// their own.
func (e *Env) WithFloors() error {
	uri, err := e.URI()
	if err != nil {
		return err
	}
	null, ping, err := e.Null()
	if err != nil {
		return err
	}
	e.recording = &Env{Files: e.Files, uri: uri, null: null, ping: ping, recorder: new(recorder)}
	e.onClose(e.recording.Close)
	return nil
}

// addFloors gives tasks of a group their floors, if it has some.
func (e *Env) addFloors(g group, tasks []Task) error {
	if e.recording == nil || !g.floors {
		return nil
	}
	same, err := g.tasks(e.recording)
	if err != nil {
		return err
	}
	for i := range tasks {
		at := slices.IndexFunc(same, func(t Task) bool { return t.Name == tasks[i].Name })
		tasks[i].Floor = func() (*Floor, error) { return e.recording.floor(&same[at]) }
	}
	return nil
}

// floor records a task.
func (e *Env) floor(t *Task) (*Floor, error) {
	before := func() error {
		if t.Before != nil {
			return t.Before()
		}
		return nil
	}
	defer t.done()
	// The first time it connects.
	if err := errors.Join(before(), t.Allium(1), before()); err != nil {
		return nil, err
	}
	e.recorder.begin()
	err := t.Allium(1)
	events := e.recorder.end()
	e.recorder.players++
	if err != nil {
		return nil, err
	}
	p, err := newPlayer(events, e.recorder.players, t.Values)
	if err != nil {
		return nil, err
	}
	return &Floor{Before: before, Do: repeat(p.play), Close: p.close}, nil
}

// recorder dials connections and notes what goes over them.
type recorder struct {
	dialer net.Dialer
	mu     sync.Mutex
	on     bool
	events []event

	players uint16 // of what was recorded so far
}

// event is a read or a write.
type event struct {
	conn  *recordedConn
	write bool
	data  []byte
}

type recordedConn struct {
	net.Conn
	r       *recorder
	address string
}

func (r *recorder) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := r.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &recordedConn{c, r, address}, nil
}

func (r *recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = true
}

func (r *recorder) end() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.on, r.events = false, nil
	return events
}

func (r *recorder) note(c *recordedConn, write bool, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on && len(data) > 0 {
		r.events = append(r.events, event{c, write, bytes.Clone(data)})
	}
}

func (c *recordedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.r.note(c, false, b[:n])
	return n, err
}

func (c *recordedConn) Write(b []byte) (int, error) {
	c.r.note(c, true, b) // before the reply can come
	return c.Conn.Write(b)
}

// step is one message that is sent, or the length of one that is read.
type step struct {
	conn    net.Conn
	send    []byte
	patches []patch
	size    int
	cursor  int // where in the reply the id of a cursor is that goes on; 0: there is none
}

// patch is a place in a message that changes from time to time.
type patch struct {
	at    int
	kind  patchKind
	reply int // the step with the cursor
}

type patchKind uint8

const (
	patchCursor patchKind = iota // eight bytes: the id of a cursor
	patchNumber                  // eight bytes: a transaction number
	patchID                      // four bytes: the time in the ObjectID of what is written
)

// player plays steps.
type player struct {
	steps   []step
	conns   []net.Conn
	buffer  []byte
	outside [][]byte // of the messages and buffer
	times   uint64
	values  func(reply bson.Raw)
	ids     []uint64 // the cursors of this time, by step
}

const messageHeader = 16 + 4 + 1 // and flags and the kind of the section

// newPlayer makes steps of events. The number is for its sessions.
func newPlayer(events []event, session uint16, values func(bson.Raw)) (p *player, err error) {
	p = &player{values: values}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	conns := map[*recordedConn]net.Conn{}
	cursors := map[uint64]int{} // the step of the reply that has the id
	largest := 0
	for _, m := range exchanges(events) {
		if m.hello() {
			return p, errors.New("a connection was made while the task was recorded")
		}
		c := conns[m.conn]
		if c == nil {
			if c, err = net.Dial("tcp", m.conn.address); err != nil {
				return p, err
			}
			conns[m.conn] = c
			p.conns = append(p.conns, c)
		}
		st := step{conn: c}
		if m.write {
			st.send = p.room(len(m.data))
			copy(st.send, m.data)
			otherSession(st.send, session)
			st.patches = patches(m.data, cursors)
		} else {
			st.size = len(m.data)
			largest = max(largest, st.size)
			if id, _ := bson.Raw(m.data[messageHeader:]).Lookup("cursor", "id").Int64(); id != 0 {
				st.cursor = 4 +
					bytes.Index(m.data, binary.LittleEndian.AppendUint64([]byte("\x12id\x00"), uint64(id)))
				cursors[uint64(id)] = len(p.steps)
			}
		}
		p.steps = append(p.steps, st)
	}
	p.buffer = p.room(largest)
	p.ids = make([]uint64, len(p.steps))
	if len(p.steps) == 0 {
		return p, errors.New("nothing was recorded")
	}
	return p, nil
}

// otherSession changes the id of a message's session, so that each floor has sessions of its own.
func otherSession(message []byte, number uint16) {
	before := []byte("\x03lsid\x00\x1e\x00\x00\x00\x05id\x00\x10\x00\x00\x00\x04")
	if at := bytes.Index(message, before); at >= 0 {
		binary.LittleEndian.PutUint16(message[at+len(before):], number)
	}
}

// exchanges makes whole messages of events, in their order, and leaves out those of monitors: a
// monitor sends nothing but hello, or only reads what the server goes on sending.
func exchanges(events []event) []event {
	type stream struct {
		in, out []byte // what is not a whole message yet
		works   bool   // a message that is not hello was sent
	}
	streams := map[*recordedConn]*stream{}
	var messages []event
	for _, e := range events {
		s := streams[e.conn]
		if s == nil {
			s = new(stream)
			streams[e.conn] = s
		}
		half := &s.in
		if e.write {
			half = &s.out
		}
		*half = append(*half, e.data...)
		for len(*half) >= 4 && len(*half) >= int(binary.LittleEndian.Uint32(*half)) {
			n := int(binary.LittleEndian.Uint32(*half))
			m := event{e.conn, e.write, (*half)[:n:n]}
			*half = (*half)[n:]
			s.works = s.works || m.write && !m.hello()
			messages = append(messages, m)
		}
	}
	return slices.DeleteFunc(messages, func(m event) bool { return !streams[m.conn].works })
}

// hello reports whether with this whole message a driver asks for a server's description for
// itself: as OP_QUERY, in which nothing else is sent, or by the name of its command. The one that a
// caller runs has a session.
func (e *event) hello() bool {
	const opQuery = 2004
	if !e.write || len(e.data) < messageHeader+5 {
		return false
	}
	if binary.LittleEndian.Uint32(e.data[12:]) == opQuery {
		return true
	}
	name, _, _ := bytes.Cut(e.data[messageHeader+5:], []byte{0})
	return slices.Contains([]string{"hello", "isMaster", "ismaster"}, string(name)) &&
		bson.Raw(e.data[messageHeader:]).Lookup("lsid").IsZero()
}

// patches finds what changes in a message.
func patches(message []byte, cursors map[uint64]int) (out []patch) {
	each := func(element string, f func(at int)) {
		for from := 0; ; {
			at := bytes.Index(message[from:], []byte(element))
			if at < 0 {
				return
			}
			from += at + len(element)
			f(from)
		}
	}
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(message[at:]) }
	switch name, _, _ := bytes.Cut(message[min(len(message), messageHeader+5):], []byte{0}); string(name) {
	case "getMore":
		at := messageHeader + 5 + len("getMore\x00")
		if reply, ok := cursors[number(at)]; ok {
			out = append(out, patch{at, patchCursor, reply})
		}
	case "insert", "update", "delete", "bulkWrite":
		each("\x12txnNumber\x00", func(at int) { out = append(out, patch{at, patchNumber, 0}) })
		for _, name := range []string{"\x07_id\x00", "\x07files_id\x00"} {
			each(name, func(at int) { out = append(out, patch{at, patchID, 0}) })
		}
	}
	return out
}

// room returns memory for a message: large ones lie outside of the heap.
func (p *player) room(n int) []byte {
	if n < 64<<10 {
		return make([]byte, n)
	}
	b := outsideHeap(n)
	p.outside = append(p.outside, b)
	return b
}

func (p *player) close() error {
	var errs []error
	for _, b := range p.outside {
		giveBack(b)
	}
	for _, c := range p.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// play does the task once.
func (p *player) play() error {
	p.times++
	for i := range p.steps {
		s := &p.steps[i]
		if s.send != nil {
			p.patch(s)
			if _, err := s.conn.Write(s.send); err != nil {
				return err
			}
			continue
		}
		reply := p.buffer[:s.size]
		got, err := io.ReadAtLeast(s.conn, reply, messageHeader)
		if err != nil {
			return err
		}
		if n := int(binary.LittleEndian.Uint32(reply)); n != s.size {
			return fmt.Errorf("a reply of %d bytes, where %d were recorded: %.200q", n, s.size, reply[:min(n, got)])
		}
		if _, err := io.ReadFull(s.conn, reply[got:]); err != nil {
			return err
		}
		if s.cursor > 0 {
			p.ids[i] = binary.LittleEndian.Uint64(reply[s.cursor:])
		}
		if p.values != nil {
			p.values(bson.Raw(reply[messageHeader:]))
		}
	}
	return nil
}

// patch changes what changes in a message.
func (p *player) patch(s *step) {
	for _, c := range s.patches {
		at := s.send[c.at:]
		switch c.kind {
		case patchCursor:
			binary.LittleEndian.PutUint64(at, p.ids[c.reply])
		case patchNumber:
			binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)+1<<20)
		case patchID:
			binary.BigEndian.PutUint32(at, uint32(p.times))
		}
	}
}
