package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
)

// Cipher encrypts what is sent and decrypts what comes back (specification: Client Side
// Encryption). It is called by many goroutines.
type Cipher interface {
	// Encrypt returns the command to send instead of cmd, to the database db: cmd itself if nothing
	// of it is encrypted. It has the command's own fields only.
	Encrypt(ctx context.Context, db string, cmd bson.Raw) (bson.Raw, error)
	// Decrypt returns reply with what is encrypted in it in plain: reply itself if nothing is.
	Decrypt(ctx context.Context, reply bson.Raw) (bson.Raw, error)
}

// maxEncryptedBatch is how much of a batch is encrypted at once. Ciphertexts are longer than what
// they stand for, and must fit too (specification: Client Side Encryption, "Size limits for Write
// Commands").
const maxEncryptedBatch = 2 << 20

// sealed is a command that was encrypted. It stays the same in all attempts: what the server counts
// must not change.
type sealed struct {
	command.Command
	body []byte // its elements
}

func (s *sealed) AppendBody(dst []byte, _ *command.Target) ([]byte, error) {
	return append(dst, s.body...), nil
}

// sealedBatch is a batch that was encrypted. It always holds the same statements.
type sealedBatch struct {
	command.Batch
	body []byte
}

func (s *sealedBatch) AppendBody(dst []byte, _ *command.Target) ([]byte, error) {
	return append(dst, s.body...), nil
}

func (s *sealedBatch) AppendSequences(dst []byte, _ *command.Target) ([]byte, error) { return dst, nil }

func (s *sealedBatch) Retryable(int) bool { return s.Batch.Retryable(s.Batch.Count()) }

// encrypts reports whether the command has yet to go through the cipher.
func (r *run) encrypts() bool {
	return r.x.Cipher != nil && r.enciphered == nil && !r.op.streamed() && !r.op.late()
}

// encryptsEarly reports whether the command is to go through the cipher before a connection is
// checked out, so that none is held while the cipher waits for a key service. Behind a load
// balancer only the connection tells what its server can take.
func (r *run) encryptsEarly() bool {
	return r.encrypts() && r.pinnedConn() == nil && r.selected.MaxMessageSize > 0
}

// encrypt replaces the operation's command by an encrypted one, once for all attempts.
func (r *run) encrypt(ctx context.Context, m *message) error {
	cmd := r.op.Command
	t := m.target()
	batch, _ := cmd.(command.Batch)
	if batch != nil {
		t.MaxMessageSize = min(t.MaxMessageSize, maxEncryptedBatch)
	}
	doc, err := asDocument(cmd, &t)
	if err != nil && batch != nil { // one statement may be longer
		t.MaxMessageSize, t.MaxBatchCount = m.target().MaxMessageSize, 1
		doc, err = asDocument(cmd, &t)
	}
	if err != nil {
		return m.named(err)
	}
	r.flight.phase.Store(&phaseEncryption)
	start := time.Now()
	defer func() { r.tells.encryption += time.Since(start) }()
	out, err := r.x.Cipher.Encrypt(ctx, r.op.DB, doc)
	if err != nil {
		return r.phase(ctx, "encryption", m.named(err))
	}
	switch {
	case len(out) == len(doc) && &out[0] == &doc[0]:
		r.enciphered = cmd
	case batch != nil:
		r.enciphered = &sealedBatch{batch, out.Elements()}
	default:
		r.enciphered = &sealed{cmd, out.Elements()}
	}
	return nil
}

// asDocument returns a command as one document: what it sends beside its body becomes arrays.
func asDocument(cmd command.Command, t *command.Target) (bson.Raw, error) {
	start, dst := bson.BeginDocument(nil)
	dst, err := cmd.AppendBody(dst, t)
	if err != nil {
		return nil, err
	}
	if s, ok := cmd.(command.Sequencer); ok {
		sequences, err := s.AppendSequences(nil, t)
		if err != nil {
			return nil, err
		}
		if dst, err = appendArrays(dst, sequences); err != nil {
			return nil, err
		}
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
	if err != nil {
		res.Release()
		if res.Conn != nil && r.op.Conn == nil {
			res.Conn.Return()
		}
		return Result{}, r.phase(ctx, "decryption", fmt.Errorf("%s: %w", r.op.Command.Name(), err))
	}
	res.Reply = out
	return res, nil
}
