package gridfs

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"allium/bson"
)

// chunk is a document of the chunks collection. One that is written straight into a message, or
// read where it lies in a reply, is never copied on the way: data is a view of other memory.
type chunk struct {
	id   bson.ObjectID
	file bson.RawValue
	n    int64
	data []byte
	// wrong says what is wrong with a chunk that was read, "" if nothing is.
	wrong string
}

// chunkBSON encodes and decodes chunks. A chunk that a cursor decoded is valid until the cursor
// moves on (see allium.Cursor).
var chunkBSON = func() *bson.Options {
	codecs, err := bson.NewCodecs(bson.CodecFor(appendChunk, parseChunk))
	if err != nil {
		panic(err)
	}
	return &bson.Options{Codecs: codecs}
}()

func appendChunk(dst []byte, c chunk) (bson.Type, []byte, error) {
	start, dst := bson.BeginDocument(dst)
	dst = bson.AppendObjectID(dst, "_id", c.id)
	dst = bson.AppendRawValue(dst, "files_id", c.file)
	dst = bson.AppendInt32(dst, "n", int32(c.n))
	dst = bson.AppendBinary(dst, "data", bson.BinaryGeneric, c.data)
	return bson.TypeEmbeddedDocument, bson.EndDocument(dst, start), nil
}

func parseChunk(v bson.RawValue) (chunk, error) {
	c := chunk{n: -1, wrong: "it has no data field"}
	for key, v := range bson.Raw(v.Value).All() {
		switch key {
		case "n":
			n, ok := v.AsInt64()
			if !ok {
				return c, fmt.Errorf("chunk has n %v, want an integer", v)
			}
			c.n = n
		case "data":
			b, ok := v.Binary()
			if c.wrong = ""; !ok {
				c.wrong = fmt.Sprintf("its data is a BSON %s, want a binary", v.Type)
			}
			c.data = b.Data
		}
	}
	return c, nil
}

// chunkIDs are the ids of the chunks of one upload. They follow each other without a gap and are
// those of no other upload, so that the first and the last one say exactly which chunks are this
// upload's, whoever else uses the same file id.
type chunkIDs struct{ first, next bson.ObjectID }

func newChunkIDs() chunkIDs {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:4], uint32(time.Now().Unix()))
	rand.Read(id[4:9]) // never fails
	return chunkIDs{id, id}
}

// take returns the next id.
func (c *chunkIDs) take() bson.ObjectID {
	id := c.next
	for i := len(c.next) - 1; i >= 0; i-- {
		if c.next[i]++; c.next[i] != 0 {
			break
		}
	}
	return id
}
