package auth

import (
	"context"
	"errors"
	"fmt"

	"allium/auth"
	"allium/bson"
)

// saslClient is the client's side of a SASL mechanism (RFC 4422), for one conversation.
type saslClient interface {
	// start returns the first payload. It is called once.
	start(ctx context.Context) ([]byte, error)
	// next answers a payload of the server.
	next(ctx context.Context, challenge []byte) ([]byte, error)
	// complete reports whether the conversation may end here: the server has proved what it must
	// prove.
	complete() bool
}

// saslConversation carries a saslClient over saslStart and saslContinue.
type saslConversation struct {
	mechanism auth.Mechanism
	source    string
	client    saslClient
	// skipEmptyExchange asks the server to end the conversation with its last payload, not a round
	// trip later.
	skipEmptyExchange bool
	// canSpeculate says that the first payload may travel with the hello.
	canSpeculate bool
	// patient says that a step may wait for a person, whom no operation's timeout hurries.
	patient bool
}

func (s *saslConversation) first(dst []byte) ([]byte, bool) {
	if !s.canSpeculate {
		return dst, false
	}
	payload, err := s.client.start(context.Background())
	if err != nil {
		return dst, false // run meets the error again
	}
	dst = s.appendStart(dst, payload)
	return bson.AppendString(dst, "db", s.source), true
}

func (s *saslConversation) appendStart(dst, payload []byte) []byte {
	dst = bson.AppendInt32(dst, "saslStart", 1)
	dst = bson.AppendString(dst, "mechanism", string(s.mechanism))
	dst = bson.AppendBinary(dst, "payload", bson.BinaryGeneric, payload)
	dst = bson.AppendInt32(dst, "autoAuthorize", 1)
	if s.skipEmptyExchange {
		options, out := bson.BeginDocumentElement(dst, "options")
		out = bson.AppendBool(out, "skipEmptyExchange", true)
		dst = bson.EndDocument(out, options)
	}
	return dst
}

// maxExchanges bounds a conversation with a server that never comes to an end.
const maxExchanges = 10

func (s *saslConversation) run(ctx context.Context, t Transport, reply bson.Raw) error {
	if reply == nil {
		within, cancel := s.within(ctx, t)
		payload, err := s.client.start(within)
		cancel()
		if err != nil {
			return err
		}
		reply, err = t.RunCommand(ctx, s.source, func(dst []byte) []byte { return s.appendStart(dst, payload) })
		if err != nil {
			return err
		}
	}
	for range maxExchanges {
		challenge, ok := reply.Lookup("payload").Binary()
		if !ok {
			return errors.New("server sent no payload")
		}
		done := reply.Lookup("done").AsBool()
		var payload []byte
		if !s.client.complete() {
			within, cancel := s.within(ctx, t)
			var err error
			payload, err = s.client.next(within, challenge.Data)
			cancel()
			if err != nil {
				return err
			}
		}
		if done {
			if !s.client.complete() {
				return errors.New("server ended the conversation before it proved who it is")
			}
			return nil
		}
		id := reply.Lookup("conversationId")
		var err error
		reply, err = t.RunCommand(ctx, s.source, func(dst []byte) []byte {
			dst = bson.AppendInt32(dst, "saslContinue", 1)
			if id.Type != 0 {
				dst = bson.AppendRawValue(dst, "conversationId", id)
			}
			return bson.AppendBinary(dst, "payload", bson.BinaryGeneric, payload)
		})
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("server did not end the conversation within %d exchanges", maxExchanges)
}

// within returns the context of a step of the client.
func (s *saslConversation) within(ctx context.Context, t Transport) (context.Context, context.CancelFunc) {
	if s.patient {
		return ctx, func() {}
	}
	return within(ctx, t)
}

// within returns a context for a request that authentication sends to others than the server.
func within(ctx context.Context, t Transport) (context.Context, context.CancelFunc) {
	if limit := t.Limit(); limit > 0 {
		return context.WithTimeout(ctx, limit)
	}
	return ctx, func() {}
}

// plain is the mechanism PLAIN (RFC 4616): the password in clear, for servers that ask an LDAP
// directory.
type plain struct{ user, password string }

func newPlain(id *identity) conversation {
	c := &id.credential
	return &saslConversation{
		mechanism: c.Mechanism, source: c.Source, client: &plain{user: c.Username, password: string(c.Password)},
	}
}

func (p *plain) start(context.Context) ([]byte, error) {
	return []byte("\x00" + p.user + "\x00" + p.password), nil
}

func (p *plain) next(context.Context, []byte) ([]byte, error) { return nil, nil }

func (p *plain) complete() bool { return true } // the server proves nothing
