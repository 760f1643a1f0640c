package encryption_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/event"
	"allium/mongoerr"
	"allium/mongotest"
)

// Prose test 3 of the specification Client Side Operations Timeout, "ClientEncryption", with the
// timeout of the client of the key vault, and with one of Options.Timeout.
func TestProseTimeoutClientEncryption(t *testing.T) {
	for _, own := range []bool{false, true} {
		for _, operation := range []string{"createDataKey", "encrypt", "decrypt"} {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
				var sent []string
				timeout := new(10 * time.Millisecond)
				// open returns a new Client, with the timeout unless it is to be without.
				open := func(limited bool) (*encryption.Client, func()) {
					co := allium.ClientOptions{Dialer: d, CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
						if name, _ := e.Command.Lookup(e.CommandName).StringValue(); name == "datakeys" {
							sent = append(sent, e.CommandName)
						}
					}}}
					o := encryption.Options{KeyOptions: encryption.KeyOptions{KeyVault: "keyvault.datakeys", KMS: localKMS()}}
					switch {
					case limited && own:
						o.Timeout = timeout
					case limited:
						co.Timeout = timeout
					}
					o.KeyVaultClient = must(allium.Open(d.URI(), co))
					must(o.KeyVaultClient.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})) // it knows the servers
					keys := must(encryption.New(o))
					return keys, func() {
						keys.Close()
						o.KeyVaultClient.Close(ctx)
					}
				}
				before, end := open(false)
				id := must(before.CreateDataKey(ctx, "local"))
				o := encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id}
				secret := must(before.Encrypt(ctx, "hello", o))
				end()
				keys, end := open(true)
				defer end()
				command := "find"
				if operation == "createDataKey" {
					command = "insert"
				}
				d.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, Block: 15 * time.Millisecond})
				sent = nil
				var err error
				switch operation {
				case "createDataKey":
					_, err = keys.CreateDataKey(ctx, "local")
				case "encrypt":
					_, err = keys.Encrypt(ctx, "hello", o)
				case "decrypt":
					_, err = keys.Decrypt(ctx, secret)
				}
				if e, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || !errors.Is(e, context.DeadlineExceeded) {
					t.Errorf("%s: %v, want a timeout", operation, err)
				}
				if len(sent) != 1 || sent[0] != command {
					t.Errorf("%s: sent %q, want one %s", operation, sent, command)
				}
				time.Sleep(time.Second) // for the reply that is late
			})
		}
	}
}
