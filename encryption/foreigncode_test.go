package encryption_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/fakekms"
	"allium/internal/owncode"
	"allium/mongotest"
)

// A keyPlace is one where in-use encryption runs code of the program's.
type keyPlace struct {
	name string
	// calls says that the code may use the client.
	calls bool
	// fetched says that it runs as a key has been fetched to be used.
	fetched bool
	set     func(o *encryption.KeyOptions, code func())
}

var keyPlaces = []keyPlace{
	{"Credentials", true, false, func(o *encryption.KeyOptions, code func()) {
		good := auth.AWSCredentials{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey}
		o.KMS = kms.Providers{"aws": kms.AWS{Credentials: func(context.Context) (auth.AWSCredentials, error) { code(); return good, nil }}}
	}},
	{"KMSConnect", true, false, func(o *encryption.KeyOptions, code func()) {
		dial := o.KMSConnect
		o.KMSConnect = func(ctx context.Context, address string) (net.Conn, error) { code(); return dial(ctx, address) }
	}},
	{"VerifyConnection", true, false, func(o *encryption.KeyOptions, code func()) {
		cfg := o.TLS["aws"].Clone()
		cfg.VerifyConnection = func(tls.ConnectionState) error { code(); return nil }
		o.TLS = map[string]*tls.Config{"aws": cfg}
	}},
	{"log handler of requests", false, false, func(o *encryption.KeyOptions, code func()) {
		o.Logger = slog.New(owncode.Handler{Words: "Key service request", Code: code})
	}},
	{"log handler of keys", false, true, func(o *encryption.KeyOptions, code func()) {
		o.Logger = slog.New(owncode.Handler{Words: "Data keys fetched", Code: code})
	}},
}

// A keyed is an operation that asks a key service, with the client that encrypts by itself and the
// one that does when it is told.
type keyed struct {
	name string
	// own says that it does so on a goroutine of the driver's, and not of the caller's.
	own bool
	// fetches says that it uses the key.
	fetches bool
	run     func(ctx context.Context, w *codedWorld) error
}

type codedWorld struct {
	auto, plain *allium.Client
	keys        *encryption.Client
	id, other   bson.UUID
	secret      bson.Binary
}

var keyedOperations = []keyed{
	{"CreateDataKey", false, false, func(ctx context.Context, w *codedWorld) error {
		_, err := w.keys.CreateDataKey(ctx, "aws", encryption.DataKeyOptions{MasterKey: masterKeys["aws"]})
		return err
	}},
	{"RewrapManyDataKey", true, false, func(ctx context.Context, w *codedWorld) error {
		_, err := w.keys.RewrapManyDataKey(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{w.id, w.other}}}}})
		return err
	}},
	{"Encrypt", true, true, func(ctx context.Context, w *codedWorld) error {
		_, err := w.keys.Encrypt(ctx, "x", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &w.id})
		return err
	}},
	{"Decrypt", true, true, func(ctx context.Context, w *codedWorld) error {
		_, err := w.keys.Decrypt(ctx, w.secret)
		return err
	}},
	{"InsertOne", true, true, func(ctx context.Context, w *codedWorld) error {
		_, err := w.auto.Database("db").Collection("coll").InsertOne(ctx, bson.D{{Key: "ssn", Value: "1"}})
		return err
	}},
	{"Find", true, true, func(ctx context.Context, w *codedWorld) error {
		cur, err := w.auto.Database("db").Collection("coll").Find(ctx, bson.D{{Key: "ssn", Value: "0"}})
		if err == nil {
			_, err = cur.All(ctx)
		}
		return err
	}},
	{"InsertOne in a transaction", true, true, func(ctx context.Context, w *codedWorld) error {
		return w.auto.Transact(ctx, func(ctx context.Context) error {
			_, err := w.auto.Database("db").Collection("coll").InsertOne(ctx, bson.D{{Key: "ssn", Value: "1"}})
			return err
		})
	}},
}

// Whatever code of the program's does for whom in-use encryption asks a key service, the operation
// has its error, or goes the way of the code if that runs on the caller's goroutine; the next one
// works, and nothing is left.
func TestCodeOfKeyServices(t *testing.T) {
	noAWSEnvironment(t)
	metadata(t, func(_ *http.Request, w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) })
	services, _ := services(t)
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	for _, place := range keyPlaces {
		t.Run(place.name, func(t *testing.T) {
			var armed, ran atomic.Bool
			var do func()
			code := func() {
				if armed.CompareAndSwap(true, false) {
					ran.Store(true)
					do()
				}
			}
			w := &codedWorld{plain: must(allium.Open(d.URI(), allium.ClientOptions{MaxPoolSize: new(1)}))}
			defer w.plain.Close(t.Context())
			o := encryption.KeyOptions{KeyVault: "keyvault.datakeys", KMS: kms.Providers{"aws": services.KMS["aws"]},
				TLS: map[string]*tls.Config{"aws": services.TLS["aws"]}, KMSConnect: services.KMSConnect, KeyExpiration: new(time.Nanosecond)}
			place.set(&o, code)
			o.KeyVaultClient = w.plain
			w.keys = must(encryption.New(encryption.Options{KeyOptions: o}))
			defer w.keys.Close()
			w.id = must(createKey(t, w.keys, "aws", masterKeys["aws"]))
			w.other = must(createKey(t, w.keys, "aws", masterKeys["aws"]))
			w.secret = must(w.keys.Encrypt(t.Context(), "x", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &w.id}))
			o.KeyVaultClient = nil
			w.auto = must(allium.Open(d.URI(), allium.ClientOptions{MaxPoolSize: new(1), Encryption: encryption.Auto(encryption.AutoOptions{
				KeyOptions: o, Schemas: map[string]any{"db.coll": schemaOf(w.id, encryption.Deterministic)}})}))
			defer w.auto.Close(t.Context())
			must(w.auto.Database("db").Collection("coll").InsertOne(t.Context(), bson.D{{Key: "ssn", Value: "0"}}))
			for _, op := range keyedOperations {
				for mode, f := range map[string]func(){"panic": func() { panic("the program's") }, "Goexit": runtime.Goexit, "call": func() {
					for _, c := range []*allium.Client{w.plain, w.auto} {
						if _, err := c.Database("db").Collection("other").InsertOne(context.Background(), bson.D{}); err != nil {
							panic(err)
						}
					}
				}} {
					if mode == "call" && !place.calls || place.fetched && !op.fetches {
						continue
					}
					t.Run(op.name+"/"+mode, func(t *testing.T) {
						for range 3 { // more often than there are connections
							do = f
							ran.Store(false)
							armed.Store(true)
							how, err := owncode.Ending(func() error { return op.run(t.Context(), w) })
							want := mode
							if op.own {
								want = "call"
							}
							switch ofCode := err != nil && (strings.Contains(err.Error(), "the program's") || strings.Contains(err.Error(), "Goexit")); {
							case !ran.Load(), how != want, mode == "call" && err != nil:
								t.Fatalf("the code ran: %v; the operation ended by %s, %v; want %s", ran.Load(), how, err, want)
							case mode != "call" && how == "call" && !ofCode:
								t.Fatalf("the error is not that of the code: %v", err)
							}
							if err := op.run(t.Context(), w); err != nil {
								t.Fatalf("the next one: %v", err)
							}
						}
						for _, c := range []*allium.Client{w.plain, w.auto} {
							s := c.Stats()
							if s.Sessions.InUse != 0 || s.Operations != 0 || s.Cursors != 0 {
								t.Errorf("left: sessions %+v, operations in flight %d, cursors %d", s.Sessions, s.Operations, s.Cursors)
							}
							for _, p := range s.Pools {
								if p.InUse != 0 || p.Connecting != 0 {
									t.Errorf("left in the pool: %+v", p)
								}
							}
						}
					})
				}
			}
		})
	}
}
