package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/failure"
	"allium/mongoerr"
)

// Cipher encrypts what is sent and decrypts what comes back (specification: Client Side
// Encryption). It is called by many goroutines.
type Cipher interface {
	// Encrypt returns the command to send instead of cmd, to the database db: cmd itself if nothing
	// of it is encrypted. It has the command's own fields only.
	Encrypt(ctx context.Context, db string, cmd bson.Raw) (bson.Raw, error)
	// Decrypt returns reply with what is encrypted in it in plain: reply itself if nothing is. If
	// documents of its batch cannot be decrypted, the error beside it is a failure.Sealed.
	Decrypt(ctx context.Context, reply bson.Raw) (bson.Raw, error)
}

// maxEncryptedBatch is how much of a batch is encrypted at once. Ciphertexts are longer than what
// they stand for, and must fit too (specification: Client Side Encryption, "Size limits for Write
// Commands").
const maxEncryptedBatch = 2 << 20

// encrypts reports whether the command goes through the cipher.
func (r *run) encrypts() bool { return r.x.Cipher != nil && !r.op.streamed() && !r.op.late() }

// encrypt replaces what was encoded by its encrypted form, once for all attempts: what the server
// counts must not change. No connection is held, while the cipher may wait for a key service.
func (r *run) encrypt(ctx context.Context) error {
	doc, err := r.buf.document(r.own)
	if err != nil {
		return r.op.Named(err)
	}
	r.flight.phase.Store(&phaseEncryption)
	start := time.Now()
	defer func() { r.tells.encryption += time.Since(start) }()
	out, err := r.x.Cipher.Encrypt(ctx, r.op.DB, doc)
	if err != nil {
		return r.phase(ctx, mongoerr.PhaseEncryption, r.op.Named(err))
	}
	r.enciphered = true
	if len(out) == len(doc) && &out[0] == &doc[0] {
		return nil
	}
	b := r.buf
	_, b.msg = bson.BeginDocument(b.msg[:bodyAt])
	b.msg = append(b.msg, out.Elements()...)
	r.own, b.tail, b.room = len(b.msg), b.tail[:0], 0
	return nil
}

// document returns a command whose own elements end at own as one document: what it sends beside
// its body becomes arrays.
func (b *buffer) document(own int) (bson.Raw, error) {
	start, dst := bson.BeginDocument(make([]byte, 0, own+len(b.tail)))
	dst = append(dst, b.msg[bodyAt+4:own]...)
	dst, err := appendArrays(dst, b.sequences())
	if err != nil {
		return nil, err
	}
	return bson.EndDocument(dst, start), nil
}

// sectionSequence is the kind of a section of OP_MSG that is a document sequence.
const sectionSequence = 1

var errSequence = errors.New("malformed document sequence")

// appendArrays appends the sections with document sequences as arrays.
func appendArrays(dst, sections []byte) ([]byte, error) {
	for len(sections) > 0 {
		if len(sections) < 5 || sections[0] != sectionSequence {
			return dst, errSequence
		}
		size := int(binary.LittleEndian.Uint32(sections[1:]))
		if size < 5 || size > len(sections)-1 {
			return dst, errSequence
		}
		section := sections[5 : 1+size]
		sections = sections[1+size:]
		end := 0
		for end < len(section) && section[end] != 0 {
			end++
		}
		if end == len(section) {
			return dst, errSequence
		}
		name, docs := string(section[:end]), section[end+1:]
		var list int
		list, dst = bson.BeginArrayElement(dst, name)
		for i := 0; len(docs) > 0; i++ {
			doc, rest, err := bson.ReadDocument(docs)
			if err != nil {
				return dst, fmt.Errorf("%w: %w", errSequence, err)
			}
			docs = rest
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), doc...)
		}
		dst = bson.EndDocument(dst, list)
	}
	return dst, nil
}

// decrypt returns a result with what is in its reply in plain.
func (r *run) decrypt(ctx context.Context, res Result) (Result, error) {
	if res.Reply == nil {
		return res, nil
	}
	out, err := r.x.Cipher.Decrypt(ctx, res.Reply)
	if sealed, ok := errors.AsType[failure.Sealed](err); ok && r.reads() {
		res.Sealed, err = sealed, nil
	}
	if err != nil {
		r.leave()
		r.killUnread(ctx, res.Conn, res.Reply)
		r.drop(res)
		if res.Conn != nil && r.op.Conn == nil {
			res.Conn.Return()
		}
		return Result{}, r.phase(ctx, mongoerr.PhaseDecryption, fmt.Errorf("%s: %w", r.op.Command.Name(), err))
	}
	res.Reply = out
	return res, nil
}

// reads reports whether the reply is for a cursor, which reads one document after the other.
func (r *run) reads() bool {
	_, more := r.op.Command.(*command.GetMore)
	return r.op.Read == nil && (r.op.KeepSession || more)
}
