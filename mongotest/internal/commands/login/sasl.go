package login

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{Name: "saslStart", API: server.V1, DataLake: true, NoAuth: true, OpQuery: true,
		Where: server.Anywhere, Run: runSASLStart})
	server.Register(&server.Command{Name: "saslContinue", API: server.V1, DataLake: true, NoAuth: true, OpQuery: true,
		Where: server.Anywhere, Run: runSASLContinue})
	server.Register(&server.Command{Name: "authenticate", API: server.V1, NoAuth: true, OpQuery: true,
		Where: server.Anywhere, Run: runAuthenticate})
	server.Register(&server.Command{Name: "getnonce", NoAuth: true, Where: server.Anywhere, Run: runGetNonce})
	server.Register(&server.Command{Name: "logout", Needs: server.Free, Strangers: func(v release.Version) bool {
		return v.AtLeast(5, 0)
	}, DataLake: true, Where: server.Anywhere, Run: runLogout})
}

// conversation is a SASL conversation that a connection is in.
type conversation struct {
	// answers the message that ends the conversation; nil: SCRAM's
	last      func(r *server.Request, payload, dst []byte) ([]byte, error)
	scram     *account.ScramServer
	user      *account.User
	skipEmpty bool
	verified  bool // only the client's empty last message is missing
}

// conversationID is the same for all: a connection has one conversation at a time.
const conversationID = 1

func runSASLStart(r *server.Request, dst []byte) ([]byte, error) {
	return saslStart(r, r.Body, r.DB, dst)
}

func saslStart(r *server.Request, cmd bson.Raw, db string, dst []byte) ([]byte, error) {
	c := r.Conn
	c.SASL = nil
	mech, err := args.ExtractString(cmd, "mechanism")
	if err != nil {
		return dst, err
	}
	payload, err := saslPayload(r, cmd)
	if err == nil {
		if v := cmd.Lookup("options"); !v.IsZero() && v.Type != bson.TypeEmbeddedDocument {
			if r.Version().AtLeast(5, 0) {
				err = args.WrongType("saslStart.options", v.Type, "object")
			} else {
				err = srverr.New(srverr.BadValue, "saslStart.options must be an object")
			}
		}
	}
	if err != nil {
		return dst, err
	}
	switch mech {
	case account.ScramSHA1, account.ScramSHA256:
		s, user, reply, err := account.StartSCRAM(r.Node.Data().Accounts(), mech, db, payload)
		if err != nil {
			return dst, err
		}
		skip := cmd.Lookup("options", "skipEmptyExchange")
		if r.Version().AtLeast(5, 0) && !skip.IsZero() && skip.Type != bson.TypeBoolean {
			return dst, account.ErrAuthentication()
		}
		c.SASL = &conversation{scram: s, user: user, skipEmpty: skip.AsBool()}
		return appendSASL(r, dst, false, reply), nil
	case account.Plain:
		if !r.Node.Data().Accounts().HasPlain() {
			return dst, errMechanism(r, mech)
		}
		parts := bytes.Split(payload, []byte{0})
		if len(parts) != 3 {
			return dst, account.ErrAuthentication()
		}
		u := r.Node.Data().Accounts().Find(string(parts[1]), db)
		if u == nil || u.Password == "" || u.Password != string(parts[2]) {
			return dst, account.ErrAuthentication()
		}
		if err := c.LogIn(u); err != nil {
			return dst, err
		}
		return appendSASL(r, dst, true, nil), nil
	case account.MechX509:
		u, err := certificateUser(r, "")
		if err != nil {
			return dst, err
		}
		if err := c.LogIn(u); err != nil {
			return dst, err
		}
		return appendSASL(r, dst, true, nil), nil
	case account.MechOIDC:
		return oidcStart(r, payload, dst)
	case account.MechAWS:
		return awsStart(r, payload, dst)
	case account.MechGSSAPI:
		return gssapiStart(r, payload, dst)
	}
	return dst, errMechanism(r, mech)
}

// errMechanism says that the server does not have a mechanism.
func errMechanism(r *server.Request, name string) error {
	if r.Version().AtLeast(5, 0) {
		return srverr.New(srverr.MechanismUnavailable, "Received authentication for mechanism %s which is not enabled",
			name)
	}
	return srverr.New(srverr.BadValue, "Received authentication for mechanism %s which is unknown or not enabled", name)
}

// saslPayload returns the payload of a message, which some clients send as text. They get such
// answers.
func saslPayload(r *server.Request, cmd bson.Raw) ([]byte, error) {
	v := cmd.Lookup("payload")
	r.TextPayload = v.Type == bson.TypeString
	switch v.Type {
	case 0:
		return nil, srverr.New(srverr.NoSuchKey, "Missing expected field \"payload\"")
	case bson.TypeBinary:
		return v.Value[5:], nil
	case bson.TypeString:
		s, _ := v.StringValue()
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return nil, srverr.New(srverr.FailedToParse, "invalid base64")
		}
		return b, nil
	}
	return nil, srverr.New(srverr.TypeMismatch, "Wrong type for field; expected BinData or String for %s",
		bsontext.Element("payload", v))
}

func appendSASL(r *server.Request, dst []byte, done bool, payload []byte) []byte {
	dst = bsondoc.Append(dst, "conversationId", int32(conversationID), "done", done)
	if r.TextPayload {
		return bson.AppendString(dst, "payload", base64.StdEncoding.EncodeToString(payload))
	}
	return bson.AppendBinary(dst, "payload", bson.BinaryGeneric, payload)
}

func runSASLContinue(r *server.Request, dst []byte) ([]byte, error) {
	c := r.Conn
	s, _ := c.SASL.(*conversation)
	if s == nil {
		return dst, srverr.New(srverr.ProtocolError, "No SASL session state found")
	}
	end := func(err error) ([]byte, error) {
		c.SASL = nil
		return dst, err
	}
	id := r.Body.Lookup("conversationId")
	if id.IsZero() {
		return end(srverr.New(srverr.NoSuchKey, "Missing expected field \"conversationId\""))
	}
	if n, ok := id.AsInt64(); !ok || n != conversationID {
		return end(srverr.New(srverr.ProtocolError, "sasl: Mismatched conversation id"))
	}
	payload, err := saslPayload(r, r.Body)
	if err != nil {
		return end(err)
	}
	if s.last != nil {
		c.SASL = nil
		return s.last(r, payload, dst)
	}
	if s.verified {
		if len(payload) != 0 {
			return end(account.ErrAuthentication())
		}
		c.SASL = nil
		if err := c.LogIn(s.user); err != nil {
			return dst, err
		}
		return appendSASL(r, dst, true, nil), nil
	}
	reply, err := s.scram.Finish(payload)
	if err != nil {
		return end(err)
	}
	s.verified = true
	if s.skipEmpty {
		c.SASL = nil
		if err := c.LogIn(s.user); err != nil {
			return dst, err
		}
	}
	return appendSASL(r, dst, s.skipEmpty, reply), nil
}

func runAuthenticate(r *server.Request, dst []byte) ([]byte, error) {
	if err := args.CheckFields(r, r.Cmd.Name, "mechanism", "user", "nonce", "key"); err != nil {
		return dst, err
	}
	mech, ok := r.Body.Lookup("mechanism").StringValue()
	if !ok {
		return dst, srverr.New(srverr.BadValue, "Auth mechanism not specified")
	}
	if mech != account.MechX509 && r.Version().AllParsed() {
		return dst, account.ErrAuthentication()
	}
	if mech != account.MechX509 {
		return dst, srverr.New(srverr.BadValue,
			"Received authentication for mechanism %s which is unknown or not enabled", mech)
	}
	return authenticateX509(r, r.Body, dst)
}

func authenticateX509(r *server.Request, cmd bson.Raw, dst []byte) ([]byte, error) {
	name, _ := cmd.Lookup("user").StringValue()
	u, err := certificateUser(r, name)
	if err != nil {
		return dst, err
	}
	if err := r.Conn.LogIn(u); err != nil {
		return dst, err
	}
	return bsondoc.Append(dst, "dbname", account.ExternalDB, "user", u.Name), nil
}

// certificateUser returns the user whom the connection's client certificate names.
func certificateUser(r *server.Request, name string) (*account.User, error) {
	tc, ok := r.Conn.NetConn().(*tls.Conn)
	if !ok {
		if name == "" {
			return nil, srverr.New(srverr.AuthenticationFailed, "No user name provided")
		}
		return nil, account.ErrAuthentication()
	}
	certs := tc.ConnectionState().PeerCertificates
	if len(certs) == 0 {
		return nil, srverr.New(srverr.AuthenticationFailed, "No verified subject name available from client")
	}
	subject := certs[0].Subject.String()
	if name != "" && name != subject {
		return nil, srverr.New(srverr.AuthenticationFailed, "There is no x.509 client certificate matching the user.")
	}
	u := r.Node.Data().Accounts().Find(subject, account.ExternalDB)
	if u == nil {
		return nil, srverr.New(srverr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", subject,
			account.ExternalDB)
	}
	return u, nil
}

func runGetNonce(r *server.Request, dst []byte) ([]byte, error) {
	b := make([]byte, 8)
	rand.Read(b)
	return bson.AppendString(dst, "nonce", hex.EncodeToString(b)), nil
}

func runLogout(r *server.Request, dst []byte) ([]byte, error) {
	r.Conn.SetUser(nil)
	return dst, nil
}

// appendSpeculative lets hello begin the authentication; a failure just is not mentioned.
func appendSpeculative(r *server.Request, dst []byte) ([]byte, error) {
	v := r.Body.Lookup("speculativeAuthenticate")
	if v.IsZero() || r.Streaming {
		return dst, nil
	}
	if v.Type != bson.TypeEmbeddedDocument && r.Version().AtLeast(5, 0) {
		return dst, args.WrongType(r.Name+".speculativeAuthenticate", v.Type, "object")
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return dst, srverr.New(srverr.BadValue, "%s.speculativeAuthenticate must be an Object", r.Name)
	}
	cmd := bson.Raw(v.Value)
	if cmd.IsEmpty() {
		return dst, srverr.New(srverr.BadValue, "%s.speculativeAuthenticate must be a non-empty Object", r.Name)
	}
	db, _ := cmd.Lookup("db").StringValue()
	at, out := bson.BeginDocumentElement(dst, "speculativeAuthenticate")
	var err error
	switch {
	case !cmd.Lookup("saslStart").IsZero():
		out, err = saslStart(r, cmd, db, out)
	case !cmd.Lookup("authenticate").IsZero():
		out, err = authenticateX509(r, cmd, out)
	default:
		return dst, nil
	}
	if err != nil {
		return dst, nil
	}
	return bson.EndDocument(out, at), nil
}

// appendMechanisms answers hello's saslSupportedMechs.
func appendMechanisms(r *server.Request, dst []byte) ([]byte, error) {
	v := r.Body.Lookup("saslSupportedMechs")
	name, ok := v.StringValue()
	if doc, isDoc := v.Document(); !ok && v.Type != 0 && r.Version().AllParsed() {
		if !isDoc {
			return dst, srverr.New(srverr.TypeMismatch, "UserName must be either a string or an object")
		}
		for _, field := range []string{"user", "db"} {
			if doc.Lookup(field).Type != bson.TypeString {
				return dst, srverr.New(srverr.BadValue, "UserName must contain a field named: %s", field)
			}
		}
		name, ok = bsondoc.MustString(doc.Lookup("db"))+"."+bsondoc.MustString(doc.Lookup("user")), true
	}
	if !ok || r.Streaming {
		return dst, nil
	}
	db, user, ok := strings.Cut(name, ".")
	if !ok {
		if r.Version().AtLeast(5, 0) {
			return dst, srverr.New(srverr.BadValue, "UserName must contain a '.' separated database.user pair")
		}
		return dst, srverr.New(srverr.BadValue, "username must contain a '.' separated database.user pair")
	}
	u := r.Node.Data().Accounts().Find(user, db)
	if u == nil || len(u.Creds) == 0 {
		return dst, nil
	}
	return bsondoc.AppendStrings(dst, "saslSupportedMechs", u.SortedMechanisms()), nil
}
