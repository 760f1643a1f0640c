// Package nullserver answers MongoDB's wire protocol with canned replies, as fast as it can:
// whoever talks to it measures the client alone. It looks at a command's name, its collection and
// its cursor, and at nothing else but the part of a file that is asked for.
package nullserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"allium/bson"
)

// What the collections hold: reads of any other name find nothing.
const (
	One      = "one"      // one document of Sample
	Slow     = "slow"     // the same, SlowBy later
	Many     = "many"     // ManyDocs documents of Sample
	ManyDocs = 10_000     //
	Files    = "fs.files" // a file of FileSize bytes
	Chunks   = "fs.chunks"
	FileSize = 50 << 20
)

// SlowBy is how long a find in Slow takes.
const SlowBy = 2 * time.Millisecond

// Sample is the document with ten fields that One and Many hold.
type Sample struct {
	ID      bson.ObjectID `bson:"_id"`
	Name    string        `bson:"name"`
	Email   string        `bson:"email"`
	Age     int32         `bson:"age"`
	Balance float64       `bson:"balance"`
	Active  bool          `bson:"active"`
	Created bson.DateTime `bson:"created"`
	City    string        `bson:"city"`
	Visits  int64         `bson:"visits"`
	Notes   string        `bson:"notes"`
}

// NewSample returns the document.
func NewSample() Sample {
	return Sample{FileID, "Ada Lovelace", "ada@example.com", 36, 1234.5, true, 1_700_000_000_000, "London", 1 << 33,
		"writes programs for engines"}
}

// FileID is the _id of the file and of the documents.
var FileID = bson.ObjectID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}

const (
	opReply    = 1
	opQuery    = 2004
	opMsg      = 2013
	header     = 16
	chunkSize  = 255 << 10
	firstBatch = 101      // documents
	maxBatch   = 16 << 20 // bytes
)

// Server has the replies ready.
type Server struct {
	hello, ok, empty []byte
	finds            map[string][]byte // by collection
	getMores         map[int64][]byte  // by cursor

	chunks [][]byte
	parts  sync.Map // replies with some of the chunks, by part
}

// part is a run of chunks.
type part struct{ first, count int }

// New makes the replies.
func New() (*Server, error) {
	s := &Server{finds: make(map[string][]byte), getMores: make(map[int64][]byte)}
	s.hello = document(func(d []byte) []byte {
		d = bson.AppendBool(d, "ismaster", true)
		d = bson.AppendBool(d, "isWritablePrimary", true)
		d = bson.AppendBool(d, "helloOk", true)
		d = bson.AppendInt32(d, "maxBsonObjectSize", 16<<20)
		d = bson.AppendInt32(d, "maxMessageSizeBytes", 48_000_000)
		d = bson.AppendInt32(d, "maxWriteBatchSize", 100_000)
		d = bson.AppendInt32(d, "logicalSessionTimeoutMinutes", 30)
		d = bson.AppendInt32(d, "minWireVersion", 0)
		return bson.AppendInt32(d, "maxWireVersion", 25)
	})
	s.ok = document(func(d []byte) []byte { return d })
	s.empty = cursor("firstBatch", 0, nil)
	sample, err := bson.Marshal(NewSample())
	if err != nil {
		return nil, err
	}
	file, err := bson.Marshal(bson.D{{Key: "_id", Value: FileID}, {Key: "length", Value: int64(FileSize)},
		{Key: "chunkSize", Value: int32(chunkSize)},
		{Key: "uploadDate", Value: bson.DateTime(1_700_000_000_000)}, {Key: "filename", Value: "file"}})
	if err != nil {
		return nil, err
	}
	s.finds[One] = cursor("firstBatch", 0, [][]byte{sample})
	s.finds[Slow] = s.finds[One]
	s.finds[Files] = cursor("firstBatch", 0, [][]byte{file})
	docs := make([][]byte, ManyDocs)
	for i := range docs {
		docs[i] = sample
	}
	s.add(Many, docs)
	var chunks [][]byte
	for left := FileSize; left > 0; left -= chunkSize {
		chunk, err := bson.Marshal(bson.D{{Key: "_id", Value: FileID}, {Key: "files_id", Value: FileID},
			{Key: "n", Value: int32(len(chunks))},
			{Key: "data", Value: bson.Binary{Data: make([]byte, min(left, chunkSize))}}})
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, chunk)
	}
	s.add(Chunks, chunks)
	s.chunks = chunks
	return s, nil
}

// add cuts documents into batches as a server does.
func (s *Server) add(collection string, docs [][]byte) {
	var batches [][][]byte
	for len(docs) > 0 {
		n, size := 0, 0
		for n < len(docs) && size+len(docs[n]) <= maxBatch && (len(batches) > 0 || n < firstBatch) {
			size += len(docs[n])
			n++
		}
		batches = append(batches, docs[:n])
		docs = docs[n:]
	}
	// The cursor of a reply names the reply that comes next.
	for i, next := len(batches)-1, int64(0); i >= 0; i-- {
		if i == 0 {
			s.finds[collection] = cursor("firstBatch", next, batches[i])
			break
		}
		reply := cursor("nextBatch", next, batches[i])
		next = int64(1000 + len(s.getMores))
		s.getMores[next] = reply
	}
}

func document(fields func([]byte) []byte) []byte {
	start, d := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendDouble(fields(d), "ok", 1), start)
}

func cursor(batch string, id int64, docs [][]byte) []byte {
	return document(func(d []byte) []byte {
		at, d := bson.BeginDocumentElement(d, "cursor")
		list, d := bson.BeginArrayElement(d, batch)
		for i, doc := range docs {
			d = append(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i), doc...)
		}
		d = bson.EndDocument(d, list)
		d = bson.AppendInt64(d, "id", id)
		d = bson.AppendString(d, "ns", "db.c")
		return bson.EndDocument(d, at)
	})
}

// Serve answers on a listener until it is closed.
func (s *Server) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if err := s.converse(c); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				fmt.Printf("null server: %v\n", err)
			}
		}()
	}
}

// converse answers one connection.
func (s *Server) converse(c net.Conn) error {
	r := bufio.NewReaderSize(c, 64<<10)
	var msg, out []byte
	for {
		size, err := r.Peek(4)
		if err != nil {
			return nil
		}
		n := int(binary.LittleEndian.Uint32(size))
		if n < header+5 || n > 48<<20+16<<10 {
			return fmt.Errorf("message of %d bytes", n)
		}
		if cap(msg) < n {
			msg = make([]byte, n)
		}
		msg = msg[:n]
		if _, err := io.ReadFull(r, msg); err != nil {
			return err
		}
		out = out[:0]
		switch op := binary.LittleEndian.Uint32(msg[12:]); op {
		case opMsg:
			if msg[16]&2 != 0 { // moreToCome: nobody waits for a reply
				continue
			}
			reply, written := s.reply(msg[header+4:])
			out = append(out, make([]byte, header+5)...)
			binary.LittleEndian.PutUint32(out[12:], opMsg)
			if written >= 0 {
				start, d := bson.BeginDocument(out)
				d = bson.AppendInt32(d, "n", int32(written))
				out = bson.EndDocument(bson.AppendDouble(d, "ok", 1), start)
			} else {
				out = append(out, reply...)
			}
		case opQuery:
			out = append(out, make([]byte, header+20)...)
			binary.LittleEndian.PutUint32(out[12:], opReply)
			out[header] = 8 // await capable
			out[header+16] = 1
			out = append(out, s.hello...)
		default:
			return fmt.Errorf("operation code %d", op)
		}
		binary.LittleEndian.PutUint32(out, uint32(len(out)))
		copy(out[8:12], msg[4:8])
		if _, err := c.Write(out); err != nil {
			return nil
		}
	}
}

// reply returns the canned reply to the sections of a message, or how many documents it wrote, else
// -1.
func (s *Server) reply(sections []byte) (reply []byte, written int) {
	if len(sections) < 7 || sections[0] != 0 {
		return s.ok, -1
	}
	kind, rest := sections[5], sections[6:]
	end := bytes.IndexByte(rest, 0)
	name, value := string(rest[:end]), rest[end+1:]
	switch name {
	case "hello", "isMaster", "ismaster":
		return s.hello, -1
	case "find":
		if text(kind, value) == Slow {
			time.Sleep(SlowBy)
		}
		if text(kind, value) == Chunks {
			if limit, ok := bson.Raw(sections[1:]).Lookup("limit").AsInt64(); ok {
				first, _ := bson.Raw(sections[1:]).Lookup("filter", "n", "$gte").AsInt64()
				return s.part(int(first), int(limit)), -1
			}
		}
		if reply, ok := s.finds[text(kind, value)]; ok {
			return reply, -1
		}
		return s.empty, -1
	case "getMore":
		return s.getMores[int64(binary.LittleEndian.Uint64(value))], -1
	case "listIndexes", "aggregate", "listCollections":
		return s.empty, -1
	case "insert":
		return nil, s.count(sections)
	}
	return s.ok, -1
}

// part returns the reply with some of the chunks. It is made once.
func (s *Server) part(first, limit int) []byte {
	p := part{first, min(limit, len(s.chunks)-first)}
	if reply, ok := s.parts.Load(p); ok {
		return reply.([]byte)
	}
	reply := cursor("firstBatch", 0, s.chunks[p.first:p.first+p.count])
	s.parts.Store(p, reply)
	return reply
}

func text(kind byte, value []byte) string {
	if kind != byte(bson.TypeString) {
		return ""
	}
	return string(value[4 : 4+binary.LittleEndian.Uint32(value)-1])
}

// count returns how many documents the document sequences of a message have, or 1 if there is none.
func (s *Server) count(sections []byte) int {
	n := 0
	for rest := sections; len(rest) > 5; {
		size := int(binary.LittleEndian.Uint32(rest[1:]))
		section := rest[1 : 1+size]
		if rest[0] == 1 {
			docs := section[4:]
			for docs = docs[bytes.IndexByte(docs, 0)+1:]; len(docs) > 0; n++ {
				docs = docs[binary.LittleEndian.Uint32(docs):]
			}
		}
		rest = rest[1+size:]
	}
	return max(n, 1)
}

// PingPong answers each connection's messages of one size with messages of another: what the
// operating system and Go's network poller take by themselves. The client's first eight bytes are
// the two sizes.
func PingPong(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			var sizes [8]byte
			if _, err := io.ReadFull(c, sizes[:]); err != nil {
				return
			}
			in := make([]byte, binary.LittleEndian.Uint32(sizes[:]))
			out := make([]byte, binary.LittleEndian.Uint32(sizes[4:]))
			for {
				if _, err := io.ReadFull(c, in); err != nil {
					return
				}
				if _, err := c.Write(out); err != nil {
					return
				}
			}
		}()
	}
}
