package bench

import (
	"encoding/binary"
	"math"
	"time"

	"allium/bson"
)

// This file makes of replies what the caller of a task gets, for its floor: by code that knows the
// order of the fields and checks nothing.

// kept is the last of the values, so that they are made.
var kept any

// eachOfBatch calls f for each document of a reply's batch.
func eachOfBatch(reply bson.Raw, f func(doc []byte)) {
	list := within(within(reply, "cursor"), "")
	for b := list[4:]; b[0] != 0; {
		for b = b[1:]; b[0] != 0; b = b[1:] {
		}
		n := binary.LittleEndian.Uint32(b[1:])
		f(b[1 : 1+n])
		b = b[1+n:]
	}
}

// within returns the document or array called name of a document, which has no other before it but
// documents and arrays; "" is the first one.
func within(doc []byte, name string) []byte {
	for b := doc[4:]; ; {
		end := 1
		for b[end] != 0 {
			end++
		}
		body := b[end+1:]
		n := binary.LittleEndian.Uint32(body)
		if name == "" || string(b[1:end]) == name {
			return body[:n]
		}
		b = body[n:]
	}
}

// sampleValues makes the documents of nullserver.Sample. They share the text of the reply.
func sampleValues(reply bson.Raw) {
	whole := string(reply)
	eachOfBatch(reply, func(doc []byte) {
		b := doc[4:]
		s := new(ourSample)
		next := func(name string, size int) (v []byte) {
			at := len(name) + 2
			v, b = b[at:at+size], b[at+size:]
			return v
		}
		text := func(name string) string {
			size := int(binary.LittleEndian.Uint32(b[len(name)+2:]))
			at := cap(reply) - cap(b) + len(name) + 2 + 4
			next(name, 4+size)
			return whole[at : at+size-1]
		}
		s.ID = bson.ObjectID(next("_id", 12))
		s.Name, s.Email = text("name"), text("email")
		s.Age = int32(binary.LittleEndian.Uint32(next("age", 4)))
		s.Balance = math.Float64frombits(binary.LittleEndian.Uint64(next("balance", 8)))
		s.Active = next("active", 1)[0] != 0
		s.Created = time.UnixMilli(int64(binary.LittleEndian.Uint64(next("created", 8)))).UTC()
		s.City = text("city")
		s.Visits = int64(binary.LittleEndian.Uint64(next("visits", 8)))
		s.Notes = text("notes")
		kept = s
	})
}

// documentValues makes the documents of a batch, as bson.D.
func documentValues(reply bson.Raw) {
	eachOfBatch(reply, func(doc []byte) { kept = plainDocument(string(doc)) })
}

// replyValue copies a reply.
func replyValue(reply bson.Raw) { kept = append(bson.Raw(nil), reply...) }

// idValues makes the ids of n documents that were inserted.
func idValues(n int) func(bson.Raw) {
	return func(bson.Raw) {
		ids := make([]any, n)
		for i := range ids {
			ids[i] = bson.ObjectID{byte(i), byte(i >> 8)}
		}
		kept = ids
	}
}

// fileValues returns what copies the chunks of a file into memory.
func fileValues(memory []byte) func(bson.Raw) {
	rest := memory
	return func(reply bson.Raw) {
		eachOfBatch(reply, func(doc []byte) {
			data, ok := bson.Raw(doc).Lookup("data").Binary()
			if !ok { // of the file
				rest = memory
				return
			}
			rest = rest[copy(rest, data.Data):]
		})
	}
}

// plainDocument makes a bson.D of a document's bytes, whose text it shares.
func plainDocument(text string) bson.D {
	d := make(bson.D, 0, 8)
	for b := text[4:]; b[0] != 0; {
		end := 1
		for b[end] != 0 {
			end++
		}
		v, n := element(bson.Type(b[0]), b[end+1:])
		d = append(d, bson.E{Key: b[1:end], Value: v})
		b = b[end+1+n:]
	}
	return d
}

func plainArray(text string) bson.A {
	a := make(bson.A, 0, 4)
	for b := text[4:]; b[0] != 0; {
		end := 1
		for b[end] != 0 {
			end++
		}
		v, n := element(bson.Type(b[0]), b[end+1:])
		a = append(a, v)
		b = b[end+1+n:]
	}
	return a
}

func u32(s string) int { return int(s[0]) | int(s[1])<<8 | int(s[2])<<16 | int(s[3])<<24 }

func u64(s string) uint64 { return uint64(u32(s)) | uint64(u32(s[4:]))<<32 }

// element returns the value that text begins with, and its length.
func element(t bson.Type, text string) (any, int) {
	switch t {
	case bson.TypeString:
		n := u32(text)
		return text[4 : 3+n], 4 + n
	case bson.TypeEmbeddedDocument:
		n := u32(text)
		return plainDocument(text[:n]), n
	case bson.TypeArray:
		n := u32(text)
		return plainArray(text[:n]), n
	case bson.TypeBoolean:
		return text[0] != 0, 1
	case bson.TypeInt32:
		return int32(u32(text)), 4
	case bson.TypeInt64:
		return int64(u64(text)), 8
	case bson.TypeDateTime:
		return bson.DateTime(u64(text)), 8
	case bson.TypeDouble:
		return math.Float64frombits(u64(text)), 8
	case bson.TypeObjectID:
		return bson.ObjectID([]byte(text[:12])), 12
	case bson.TypeNull:
		return nil, 0
	}
	panic("no document of the tasks has a " + t.String())
}
