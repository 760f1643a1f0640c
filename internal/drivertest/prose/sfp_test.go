package prose

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/mongotest"
)

// frontEnd is a cluster behind an Atlas Secure Frontend Processor (specification: Atlas Secure
// Frontend Processor Testing): that of the environment, or a deployment of mongotest behind a proxy
// that ends TLS, as the front end does.
type frontEnd struct {
	uri, user, password string
	options             allium.ClientOptions
	x509                string               // the connection string for X.509
	x509Options         allium.ClientOptions // its options
}

// startFrontEnd uses the cluster of the environment if there is one.
func startFrontEnd(t *testing.T) *frontEnd {
	t.Helper()
	if uri := os.Getenv("SFP_ATLAS_URI"); uri != "" {
		f := &frontEnd{uri: uri, user: os.Getenv("SFP_ATLAS_USER"), password: os.Getenv("SFP_ATLAS_PASSWORD"), x509: os.Getenv("SFP_ATLAS_X509_URI")}
		f.x509Options.TLSFiles = &allium.TLSFiles{CertificateKeyFile: os.Getenv("SFP_ATLAS_X509_CERT")}
		return f
	}
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.TLS(), mongotest.Auth("sfp", "secret"))
	if err := d.AddUser(mongotest.User{Name: d.ClientSubject(), DB: "$external", Roles: []string{"root"}}); err != nil {
		t.Fatal(err)
	}
	addr, authority := tlsProxy(t, d)
	f := &frontEnd{uri: "mongodb://" + addr + "/?directConnection=true", user: "sfp", password: "secret"}
	f.options.TLS = &tls.Config{RootCAs: authority}
	f.x509 = f.uri
	f.x509Options.TLS = &tls.Config{RootCAs: authority, Certificates: d.TLSConfig().Certificates}
	return f
}

// tlsProxy takes connections with TLS, and passes what it reads on to the deployment by connections
// of its own with TLS: with the client's certificate if the client has shown it, which stands for
// what the front end tells its cluster. It has a certificate of its own, whose authority it
// returns.
func tlsProxy(t *testing.T, d *mongotest.Deployment) (addr string, authority *x509.CertPool) {
	t.Helper()
	client := d.TLSConfig()
	https := httptest.NewTLSServer(nil) // has a certificate for loopback
	https.Close()
	authority = x509.NewCertPool()
	authority.AddCert(https.Certificate())
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: https.TLS.Certificates, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: client.RootCAs,
	})
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { pass(nc.(*tls.Conn), d.Hosts()[0], client.Clone()) })
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return l.Addr().String(), authority
}

// pass connects two ends until one of them closes.
func pass(front *tls.Conn, to string, cfg *tls.Config) {
	defer front.Close()
	if front.Handshake() != nil {
		return
	}
	if len(front.ConnectionState().PeerCertificates) == 0 {
		cfg.Certificates = nil
	}
	back, err := tls.Dial("tcp", to, cfg)
	if err != nil {
		return
	}
	defer back.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{front, back}, {back, front}} {
		go func() { io.Copy(way[0], way[1]); way[0].Close(); done <- struct{}{} }()
	}
	<-done
	front.Close()
	back.Close()
	<-done
}

// open makes a client.
func (f *frontEnd) open(t *testing.T, uri string, o allium.ClientOptions) *allium.Client {
	t.Helper()
	client, err := allium.Open(uri, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

// assertPing is the assertion "Ping", and assertStatus "Connection Status".
func assertPing(t *testing.T, client *allium.Client) {
	t.Helper()
	reply, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
	if ok, _ := reply.Lookup("ok").AsInt64(); err != nil || ok != 1 {
		t.Errorf("ping: %s, %v", reply, err)
	}
}

func assertStatus(t *testing.T, client *allium.Client, authenticated bool) {
	t.Helper()
	reply, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "connectionStatus", Value: 1}})
	if ok, _ := reply.Lookup("ok").AsInt64(); err != nil || ok != 1 {
		t.Fatalf("connectionStatus: %s, %v", reply, err)
	}
	if first := reply.Lookup("authInfo", "authenticatedUsers", "0"); first.IsZero() == authenticated {
		t.Errorf("connectionStatus: %s, authenticated %v", reply, authenticated)
	}
}

// assertCRUD is the assertion "CRUD Operations", in a collection of its own.
func assertCRUD(t *testing.T, client *allium.Client) {
	t.Helper()
	coll := client.Database("sfp").Collection("sfp_test_" + bson.NewObjectID().Hex())
	defer func() {
		if err := coll.Drop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	inserted, err := coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	found, err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: inserted.InsertedID}})
	if err != nil || len(found) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
}

// The unauthenticated tests.
func TestProseSFPUnauthenticated(t *testing.T) {
	f := startFrontEnd(t)
	client := f.open(t, f.uri, f.options)
	assertPing(t, client)
	assertStatus(t, client, false)
}

// The authenticated tests, in each of their variations.
func TestProseSFPAuthenticated(t *testing.T) {
	f := startFrontEnd(t)
	for name, vary := range map[string]func(o *allium.ClientOptions){
		"baseline":    func(*allium.ClientOptions) {},
		"compression": func(o *allium.ClientOptions) { o.Compressors = []string{"zstd", "snappy", "zlib"} },
		"server API":  func(o *allium.ClientOptions) { o.ServerAPI = &allium.ServerAPI{Version: allium.ServerAPIV1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("SCRAM-SHA-256", func(t *testing.T) {
				o := f.options
				o.Credential = &auth.Credential{Username: f.user, Password: auth.Secret(f.password), Mechanism: auth.MechanismScramSHA256}
				vary(&o)
				client := f.open(t, f.uri, o)
				assertPing(t, client)
				assertStatus(t, client, true)
				assertCRUD(t, client)
			})
			t.Run("X.509", func(t *testing.T) {
				if f.x509 == "" {
					t.Skip("SFP_ATLAS_X509_URI is not set")
				}
				o := f.x509Options
				o.Credential = &auth.Credential{Mechanism: auth.MechanismX509}
				vary(&o)
				client := f.open(t, f.x509, o)
				assertPing(t, client)
				assertStatus(t, client, true)
				assertCRUD(t, client)
			})
		})
	}
}
