package kerberos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// service is a service's principal, "mongodb/db1.example.com" for example, and its realm.
type service struct{ name, realm string }

// String returns the principal.
func (s service) String() string { return s.name + "@" + s.realm }

// ticket is a ticket for a service, with the key that it shares with the client.
type ticket struct {
	ticket  messages.Ticket
	key     types.EncryptionKey
	expires time.Time
}

func (t *ticket) valid() bool { return t != nil && time.Now().Before(t.expires) }

// login is the tickets of one identity.
type login struct {
	id   identity
	busy chan struct{} // holds an element while tickets are looked at or asked for

	granting *ticket // for the client's realm
	tickets  map[service]*ticket
}

// ticket returns a ticket for a service. One goroutine at a time asks for tickets, so that many
// connections at once have one made.
func (l *login) ticket(ctx context.Context, cfg *config.Config, file string, s service) (*ticket, error) {
	select {
	case l.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if t := l.tickets[s]; t.valid() {
		<-l.busy
		return t, nil
	}
	type result struct {
		t   *ticket
		err error
	}
	done := make(chan result, 1)
	go func() { // the library's I/O knows no contexts, but short time limits of its own
		defer func() { <-l.busy }()
		t, err := l.request(cfg, file, s)
		if err == nil {
			l.tickets[s] = t
		}
		done <- result{t, err}
	}()
	select {
	case r := <-done:
		return r.t, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forget drops the ticket for a service that did not accept it: its key may have been changed. It
// does not wait for a request that is under way, which brings a new one anyway.
func (l *login) forget(s service) {
	select {
	case l.busy <- struct{}{}:
		delete(l.tickets, s)
		<-l.busy
	default:
	}
}

// request asks for a ticket for a service, with one that grants others, which it asks for if need
// be. It runs on a goroutine of its own, where a panic would end the process.
func (l *login) request(cfg *config.Config, file string, s service) (_ *ticket, err error) {
	defer recovered(&err, "what the KDC answers cannot be read: %v")
	if !l.granting.valid() {
		if l.granting, err = l.logIn(cfg, file); err != nil {
			return nil, err
		}
	}
	granting, realm := l.granting, l.id.realm
	if s.realm != realm {
		across := service{"krbtgt/" + s.realm, realm}
		if granting, err = l.exchange(cfg, granting, nametype.KRB_NT_SRV_INST, across, realm); err != nil {
			return nil, explain(err, &problem{id: l.id, service: across, file: file})
		}
		realm = s.realm
	}
	t, err := l.exchange(cfg, granting, nametype.KRB_NT_SRV_HST, s, realm)
	if err != nil {
		return nil, explain(err, &problem{id: l.id, service: s, file: file})
	}
	return t, nil
}

// exchange asks the KDC of a realm for a ticket.
func (l *login) exchange(cfg *config.Config, granting *ticket, kind int32, s service, realm string) (*ticket, error) {
	c := client.NewWithPassword(l.id.user, l.id.realm, "", cfg)
	defer c.Destroy() // what referrals have left there renews itself otherwise
	_, reply, err := c.TGSREQGenerateAndExchange(types.NewPrincipalName(kind, s.name), realm, granting.ticket,
		granting.key, false)
	if err != nil {
		return nil, err
	}
	return answered(&reply.KDCRepFields)
}

// logIn gets the ticket that grants others: with a password or a keytab from the KDC, or out of a
// cache.
func (l *login) logIn(cfg *config.Config, file string) (*ticket, error) {
	if l.id.cache != "" {
		return l.fromCache()
	}
	// Without FAST, whose announcement not every KDC bears.
	options := client.DisablePAFXFAST(true)
	var c *client.Client
	if l.id.keytab != "" {
		kt, err := loadKeytab(l.id.keytab)
		if err != nil {
			return nil, err
		}
		c = client.NewWithKeytab(l.id.user, l.id.realm, kt, cfg, options)
	} else {
		c = client.NewWithPassword(l.id.user, l.id.realm, string(l.id.password), cfg, options)
	}
	request, err := messages.NewASReqForTGT(l.id.realm, cfg, c.Credentials.CName())
	var reply messages.ASRep
	if err == nil {
		reply, err = c.ASExchange(l.id.realm, request, 0)
	}
	if err != nil {
		return nil, explain(err, &problem{id: l.id, service: service{"krbtgt/" + l.id.realm, l.id.realm}, file: file,
			login: true})
	}
	return answered(&reply.KDCRepFields)
}

func loadKeytab(name string) (*keytab.Keytab, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the keytab: %w", err)
	}
	return parseKeytab(name, data)
}

// parseKeytab says nothing of what the library has against the file: its errors and panics show the
// bytes around the place, which are keys.
func parseKeytab(name string, data []byte) (kt *keytab.Keytab, err error) {
	defer func() {
		if v := recover(); v != nil {
			kt, err = nil, notAKeytab(name)
		}
	}()
	kt = keytab.New()
	if err := kt.Unmarshal(data); err != nil {
		return nil, notAKeytab(name)
	}
	return kt, nil
}

func notAKeytab(name string) error {
	return fmt.Errorf("%s is no keytab, or a damaged one: see what klist -k %[1]s says of it", name)
}

// fromCache returns the ticket that kinit has put into a cache.
func (l *login) fromCache() (*ticket, error) {
	data, err := readFile(l.id.cache)
	if err != nil {
		return nil, fmt.Errorf("read the credential cache: %w: run kinit %s, or give a keytab or a password", err, l.id)
	}
	return l.parseCache(data)
}

func (l *login) parseCache(data []byte) (*ticket, error) {
	file := l.id.cache
	owner, entries, err := parseCCache(data)
	if err != nil {
		return nil, fmt.Errorf("%s is no credential cache: %w", file, err)
	}
	if owner != (service{l.id.user, l.id.realm}) {
		return nil, fmt.Errorf("credential cache %s has the tickets of %s: run kinit %s", file, owner, l.id)
	}
	t, err := grantingTicket(entries, l.id.realm)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is no credential cache: what is in the place of a ticket is none: %w", file, err)
	case t == nil:
		return nil, fmt.Errorf("credential cache %s has no ticket that grants others: run kinit %s", file, l.id)
	case !t.valid():
		return nil, fmt.Errorf("the ticket in the credential cache %s expired at %s: run kinit %s", file,
			t.expires.UTC().Format(time.RFC3339), l.id)
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("the ticket in the credential cache %s cannot be used: %w: run kinit %s", file, err, l.id)
	}
	return t, nil
}

// check looks at what the library trusts a ticket to have when it asks for another one, or proves
// that it has the key: it panics otherwise.
func (t *ticket) check() error {
	if len(t.ticket.SName.NameString) == 0 {
		return errors.New("it names no service")
	}
	e, err := crypto.GetEtype(t.key.KeyType)
	if err != nil {
		return fmt.Errorf("its key: %w", err)
	}
	want := e.GetKeyByteSize()
	if t.key.KeyType == etypeID.AES256_CTS_HMAC_SHA384_192 {
		want = 32 // RFC 8009, section 5; the library gives the size of the keys that are derived
	}
	if n := len(t.key.KeyValue); n != want {
		return fmt.Errorf("its key has %d bytes, want %d", n, want)
	}
	return nil
}

// answered returns the ticket of a KDC's answer.
func answered(of *messages.KDCRepFields) (*ticket, error) {
	t := &ticket{of.Ticket, of.DecryptedEncPart.Key, of.DecryptedEncPart.EndTime}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("the KDC's ticket cannot be used: %w", err)
	}
	return t, nil
}
