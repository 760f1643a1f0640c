package auth

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"

	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
)

// errNoKerberos is what a program sees that asks for GSSAPI without the module that has it.
var errNoKerberos = errors.New(
	`mechanism GSSAPI needs an implementation of Kerberos: import "allium/kerberos" and set ClientOptions.GSSAPI to kerberos.New()`)

// HostResolver is what canonical host names are looked up with. *net.Resolver implements it.
type HostResolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupCNAME(ctx context.Context, host string) (string, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// gssapi is the mechanism GSSAPI (RFC 4752; specification: Authentication), for one conversation.
// The Kerberos messages are those of an auth.GSSAPI; what is done here is SASL.
type gssapi struct {
	kerberos auth.GSSAPI
	resolver HostResolver
	user     *auth.Credential
	addr     string

	context auth.GSSAPIContext
	state   gssapiState
}

type gssapiState int

const (
	gssapiTokens gssapiState = iota // the context is being established
	gssapiLayers                    // the server is to offer its security layers
	gssapiDone                      // the client has chosen one
)

// noLayer is the security layer that the client chooses: none, since TLS protects the connection
// (RFC 4752, section 3.3).
const noLayer = 1

// gssapiConversation says more about a rejection than servers do.
type gssapiConversation struct {
	*saslConversation
	client *gssapi
}

func newGSSAPI(t *Attempt) (conversation, error) {
	g := &gssapi{kerberos: t.id.kerberos, resolver: t.id.resolver, user: &t.id.credential, addr: t.addr}
	s := &saslConversation{mechanism: auth.MechanismGSSAPI, source: t.id.credential.Source, client: g}
	return &gssapiConversation{s, g}, nil
}

func (g *gssapiConversation) run(ctx context.Context, t Transport, speculative bson.Raw) error {
	err := g.saslConversation.run(ctx, t, speculative)
	if _, ok := errors.AsType[*mongoerr.ServerError](err); !ok || g.client.context == nil {
		return err
	}
	g.client.context.Refused()
	if g.client.state == gssapiDone {
		return fmt.Errorf("%w (Kerberos succeeded: check that the deployment has a user %q on %q)", err,
			g.client.user.Username, g.client.user.Source)
	}
	return fmt.Errorf(
		"%w (the server did not accept the Kerberos ticket: check that its keytab has the current key of its principal, and that its clock is right)", err)
}

// start implements saslClient.
func (g *gssapi) start(ctx context.Context) ([]byte, error) {
	host, _, err := net.SplitHostPort(g.addr)
	if err != nil {
		host = g.addr // a socket's path
	}
	p := g.user.Properties
	var c auth.GSSAPIContext
	c, err = g.kerberos.Begin(ctx, auth.GSSAPIParams{
		Username: g.user.Username, Password: g.user.Password, PasswordSet: g.user.PasswordSet,
		ServiceName:  p["SERVICE_NAME"],
		ServiceHost:  canonicalHost(ctx, g.resolver, cmp.Or(p["SERVICE_HOST"], host), p["CANONICALIZE_HOST_NAME"]),
		ServiceRealm: p["SERVICE_REALM"],
	})
	if err != nil {
		return nil, err
	}
	g.context = c
	return g.step(nil)
}

func (g *gssapi) step(token []byte) ([]byte, error) {
	reply, done, err := g.context.Step(token)
	if done {
		g.state = gssapiLayers
	}
	return reply, err
}

// next implements saslClient.
func (g *gssapi) next(_ context.Context, challenge []byte) ([]byte, error) {
	if g.state == gssapiTokens {
		return g.step(challenge)
	}
	offer, err := g.context.Unwrap(challenge)
	if err != nil {
		return nil, fmt.Errorf("server's offer of security layers: %w", err)
	}
	if len(offer) != 4 {
		return nil, fmt.Errorf("server's offer of security layers has %d bytes, want 4", len(offer))
	}
	if offer[0]&noLayer == 0 {
		return nil, errors.New(
			"server insists on a security layer of SASL, which MongoDB's protocol has no place for: use TLS, and allow connections without a layer")
	}
	// The layer, a maximum length of 0 since there is none, and who the client wants to be.
	answer := append(binary.BigEndian.AppendUint32(nil, noLayer<<24), g.user.Username...)
	out, err := g.context.Wrap(answer)
	if err != nil {
		return nil, err
	}
	g.state = gssapiDone
	return out, nil
}

// complete implements saslClient.
func (g *gssapi) complete() bool { return g.state == gssapiDone }

// canonicalHost returns the host's name for its principal (specification: Authentication, "Hostname
// Canonicalization"). It is the host as it was given if a lookup fails.
func canonicalHost(ctx context.Context, r HostResolver, host, mode string) string {
	if mode != "forward" && mode != "forwardAndReverse" {
		return host
	}
	addrs, err := r.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return host
	}
	var name string
	if mode == "forward" {
		name, err = r.LookupCNAME(ctx, host)
	} else {
		var names []string
		if names, err = r.LookupAddr(ctx, addrs[0]); err == nil && len(names) > 0 {
			name = names[0]
		}
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if err != nil || name == "" {
		return host
	}
	return name
}
