package encryption_test

import (
	"bytes"
	"crypto/aes"
	stdcipher "crypto/cipher"
	"crypto/hmac"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/fakekms"
	"allium/mongotest"
)

// services are all key services, as stand-ins.
func services(t *testing.T) (encryption.KeyOptions, *fakekms.Server) {
	t.Helper()
	s, err := fakekms.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return encryption.KeyOptions{
		KMS: kms.Providers{
			"local": kms.Local{Key: localMaster},
			"aws":   kms.AWS{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey},
			"azure": kms.Azure{TenantID: fakekms.AzureTenantID, ClientID: fakekms.AzureClientID, ClientSecret: fakekms.AzureClientSecret},
			"gcp":   kms.GCP{Email: fakekms.GCPEmail, PrivateKey: s.GCPPrivateKey()},
			"kmip":  kms.KMIP{Endpoint: "localhost:5698"},
		},
		TLS: map[string]*tls.Config{
			"aws": s.TLS(), "azure": s.TLS(), "gcp": s.TLS(), "kmip": s.ClientTLS(),
		},
		KMSConnect: s.Dial,
	}, s
}

// deterministic is the ciphertext of a value by the formula of the specification, apart from the
// code that it tests (BSON Binary Encrypted, "AEAD with CBC").
func deterministic(material []byte, id bson.Binary, v bson.RawValue) []byte {
	header := append(append([]byte{1}, id.Data...), byte(v.Type))
	mac := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha512.New, key)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	bits := binary.BigEndian.AppendUint64(nil, uint64(len(header))*8)
	iv := mac(material[64:96], header, bits, v.Value)[:16]
	pad := 16 - len(v.Value)%16
	text := append(bytes.Clone(v.Value), bytes.Repeat([]byte{byte(pad)}, pad)...)
	stdcipher.NewCBCEncrypter(must(aes.NewCipher(material[32:64])), iv).CryptBlocks(text, text)
	out := append(append(header, iv...), text...)
	return append(out, mac(material[:32], header, iv, text, bits)[:32]...)
}

// Prose test 6, "Corpus Test". What is encrypted with the keys of Azure and Google cannot be
// compared with the recorded ciphertexts, since only those services can unwrap the keys: other keys
// take their place, and what the formula gives.
func TestProseCorpus(t *testing.T) {
	for _, local := range []bool{false, true} {
		name := "remote schema"
		if local {
			name = "local schema"
		}
		t.Run(name, func(t *testing.T) { testCorpus(t, local) })
	}
}

func testCorpus(t *testing.T, local bool) {
	ctx := t.Context()
	all, _ := services(t)
	p := &prose{t: t, d: mongotest.Start(t, mongotest.ReplicaSet(1))}
	p.plain, _ = p.open(allium.ClientOptions{})
	keys := p.encryption(encryption.Options{KeyOptions: all})
	material := bytes.Repeat([]byte("0123456789abcdef"), 6)
	substituted := map[string]bool{"azure": true, "gcp": true}
	ids := map[string]bson.Binary{}
	vault := allium.CollectionOf[bson.Raw](p.plain.Database("keyvault"), "datakeys")
	for provider := range all.KMS {
		doc := specDocument(t, "corpus/corpus-key-"+provider+".json")
		ids[provider], _ = doc.Lookup("_id").Binary()
		if substituted[provider] {
			masterKey, _ := doc.Lookup("masterKey").Document()
			_, key, err := kms.MasterKeyFromBSON(masterKey)
			if err != nil {
				t.Fatal(err)
			}
			id, err := keys.CreateDataKey(ctx, provider, encryption.DataKeyOptions{MasterKey: key, Material: material})
			if err != nil {
				t.Fatal(err)
			}
			made, err := vault.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: id}})
			if err != nil {
				t.Fatal(err)
			}
			doc = concat(bson.D{{Key: "_id", Value: doc.Lookup("_id")}, {Key: "keyMaterial", Value: made.Lookup("keyMaterial")},
				{Key: "creationDate", Value: doc.Lookup("creationDate")}, {Key: "updateDate", Value: doc.Lookup("updateDate")},
				{Key: "status", Value: doc.Lookup("status")}, {Key: "masterKey", Value: made.Lookup("masterKey")},
				{Key: "keyAltNames", Value: doc.Lookup("keyAltNames")}})
		}
		p.insert("keyvault.datakeys", doc)
	}
	schema := specDocument(t, "corpus/corpus-schema.json")
	o := encryption.AutoOptions{KeyOptions: all}
	if local {
		o.Schemas = map[string]any{"db.coll": schema}
	}
	p.create("coll", "validator", validator(schema))
	client, _ := p.auto(o, allium.ClientOptions{})

	algorithms := map[string]encryption.Algorithm{"rand": encryption.Random, "det": encryption.Deterministic}
	corpus := specDocument(t, "corpus/corpus.json")
	start, copied := bson.BeginDocument(nil)
	for field, v := range corpus.All() {
		entry, ok := v.Document()
		if !ok {
			copied = bson.AppendRawValue(copied, field, v)
			continue
		}
		text := func(name string) string { s, _ := entry.Lookup(name).StringValue(); return s }
		if text("method") == "explicit" {
			eo := encryption.EncryptOptions{Algorithm: algorithms[text("algo")]}
			if text("identifier") == "id" {
				eo.KeyID = new(must(ids[text("kms")].UUID()))
			} else {
				eo.KeyAltName = text("kms")
			}
			secret, err := keys.Encrypt(ctx, entry.Lookup("value"), eo)
			switch allowed := entry.Lookup("allowed").AsBool(); {
			case allowed && err != nil:
				t.Errorf("%s: %v", field, err)
			case !allowed && err == nil:
				t.Errorf("%s is encrypted, want an error", field)
			case allowed:
				inner, dst := bson.BeginDocument(nil)
				for key, part := range entry.All() {
					if key == "value" {
						dst = bson.AppendBinary(dst, key, secret.Subtype, secret.Data)
					} else {
						dst = bson.AppendRawValue(dst, key, part)
					}
				}
				copied = bson.AppendDocument(copied, field, bson.EndDocument(dst, inner))
				continue
			}
		}
		copied = bson.AppendRawValue(copied, field, v)
	}
	copied = bson.EndDocument(copied, start)
	coll := allium.CollectionOf[bson.Raw](client.Database("db"), "coll")
	if _, err := coll.InsertOne(ctx, bson.Raw(copied)); err != nil {
		t.Fatal(err)
	}
	decrypted, err := coll.FindOne(ctx, bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(decrypted, corpus) {
		for field, v := range corpus.All() {
			if got := decrypted.Lookup(field); !got.Equal(v) {
				t.Errorf("%s: %s, want %s", field, got, v)
			}
		}
		t.Error("the document differs from the corpus")
	}

	actual, err := allium.CollectionOf[bson.Raw](p.plain.Database("db"), "coll").FindOne(ctx, bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	fields, exact, formula := 0, 0, 0
	for field, v := range specDocument(t, "corpus/corpus-encrypted.json").All() {
		entry, ok := v.Document()
		if !ok {
			continue
		}
		fields++
		service, _, _ := strings.Cut(field, "_")
		if s, ok := entry.Lookup("kms").StringValue(); ok {
			service = s
		}
		algo, _ := entry.Lookup("algo").StringValue()
		got, want, plain := actual.Lookup(field, "value"), entry.Lookup("value"), corpus.Lookup(field, "value")
		if !entry.Lookup("allowed").AsBool() {
			if !got.Equal(want) || !got.Equal(plain) {
				t.Errorf("%s: %s, want %s", field, got, want)
			}
			continue
		}
		secret, ok := got.Binary()
		if !ok || secret.Subtype != bson.BinaryEncrypted {
			t.Errorf("%s is stored as %s", field, got)
			continue
		}
		switch {
		case algo == "det" && substituted[service]:
			formula++
			if !bytes.Equal(secret.Data, deterministic(material, ids[service], plain)) {
				t.Errorf("%s is not what the formula gives", field)
			}
		case algo == "det":
			exact++
			if !got.Equal(want) {
				t.Errorf("%s: %s, want %s", field, got, want)
			}
		case got.Equal(want):
			t.Errorf("%s is the same ciphertext as the recorded one", field)
		}
		back := []bson.Binary{secret}
		if !substituted[service] {
			b, _ := want.Binary()
			back = append(back, b)
		}
		for _, b := range back {
			if v, err := keys.Decrypt(ctx, b); err != nil || v.Type != plain.Type || !bytes.Equal(v.Value, plain.Value) {
				t.Errorf("%s decrypts to %s, %v; want %s", field, v, err, plain)
			}
		}
	}
	if fields < 500 || exact == 0 || formula == 0 {
		t.Errorf("%d fields, %d compared with the recorded ciphertexts, %d with the formula", fields, exact, formula)
	}
	t.Logf("%d fields, %d compared with the recorded ciphertexts, %d with the formula", fields, exact, formula)
}
