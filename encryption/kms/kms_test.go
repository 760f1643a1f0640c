package kms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"allium/bson"
)

func TestMasterKeyDocuments(t *testing.T) {
	data, err := os.ReadFile("testdata/kek-tests.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Input  json.RawMessage
		Expect string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 19 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		var doc bson.Raw
		if err := bson.UnmarshalExtJSON(c.Input, &doc); err != nil {
			t.Fatal(err)
		}
		provider, key, err := MasterKeyFromBSON(doc)
		if c.Expect != "ok" {
			if err == nil || !strings.Contains(err.Error(), c.Expect) {
				t.Errorf("%s: %v, want %s", c.Input, err, c.Expect)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.Input, err)
			continue
		}
		again, same, err := MasterKeyFromBSON(AppendMasterKey(nil, provider, key))
		if err != nil || again != provider || same != key {
			t.Errorf("%s: written and read again: %s, %+v, %v", c.Input, again, same, err)
		}
	}
}

func TestProviders(t *testing.T) {
	good := Providers{
		"local": Local{Key: make([]byte, 96)}, "local:1_a": Local{Key: make([]byte, 96)}, "aws": AWS{}, "azure": Azure{}, "gcp": GCP{},
		"kmip": KMIP{}, "aws:x": AWS{AccessKeyID: "a", SecretAccessKey: "b"}, "azure:x": Azure{AccessToken: "t"}, "gcp:x": GCP{Email: "e", PrivateKey: []byte("k")},
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, p := range map[string]Providers{
		"no key service": {},
		`key service "pgp": unknown; want local, aws, azure, gcp or kmip`: {"pgp": AWS{}},
		`key service "aws:": the name after the colon`:                    {"aws:": AWS{}},
		`key service "aws:a-b": the name after`:                           {"aws:a-b": AWS{}},
		`it is nil`:                                                       {"aws": nil},
		`its value is of the kind "gcp"`:                                  {"aws": GCP{}},
		`"local": the key has 3 bytes`:                                    {"local": Local{Key: make([]byte, 3)}},
		`"aws:x": no fields are set`:                                      {"aws:x": AWS{}},
		`"azure:x": no fields are set`:                                    {"azure:x": Azure{}},
		`"gcp:x": no fields are set`:                                      {"gcp:x": GCP{}},
		`are both needed`:                                                 {"aws": AWS{AccessKeyID: "a"}},
		`TenantID, ClientID and ClientSecret`:                             {"azure": Azure{TenantID: "a"}},
		`Email and PrivateKey`:                                            {"gcp": GCP{Email: "a"}},
		`AccessToken and the other fields exclude each other`:             {"gcp": GCP{Email: "a", AccessToken: "t"}},
		`invalid endpoint "a/b"`:                                          {"kmip": KMIP{Endpoint: "a/b"}},
		`invalid endpoint "nodot:443"`:                                    {"azure": Azure{TenantID: "a", ClientID: "b", ClientSecret: "c", IdentityPlatformEndpoint: "nodot:443"}},
		`the port is not a number`:                                        {"kmip": KMIP{Endpoint: "localhost:kmip"}},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The endpoint of a master key may be a URL, as other drivers allow it and store it.
func TestEndpointURL(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"a.vault.azure.net": true, "https://a.vault.azure.net": true, "https://a.vault.azure.net:443/keys/": true,
		"http://a.vault.azure.net": false, "https://u@a.vault.azure.net/": false, "https:///keys": false, "https://nodot/": false,
	} {
		if err := CheckMasterKey("azure", AzureKey{VaultEndpoint: endpoint, Name: "k"}); (err == nil) != ok {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestProvidersFromBSON(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 96)
	doc, err := bson.Marshal(bson.D{
		{Key: "local", Value: bson.D{{Key: "key", Value: bson.Binary{Data: key}}}},
		{Key: "aws:team", Value: bson.D{{Key: "accessKeyId", Value: "a"}, {Key: "secretAccessKey", Value: "b"}, {Key: "sessionToken", Value: "c"}}},
		{Key: "azure", Value: bson.D{}},
		{Key: "gcp", Value: bson.D{{Key: "email", Value: "e"}, {Key: "privateKey", Value: "AQI="}}},
		{Key: "kmip", Value: bson.D{{Key: "endpoint", Value: "localhost:5698"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ProvidersFromBSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if got, ok := p["aws:team"].(AWS); !ok || got.SecretAccessKey != "b" || got.SessionToken != "c" {
		t.Errorf("%#v", p["aws:team"])
	}
	if got := p["gcp"].(GCP).PrivateKey; !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("private key %x", got)
	}
	for _, bad := range []bson.D{
		{{Key: "aws", Value: bson.D{{Key: "accessKey", Value: "a"}}}},
		{{Key: "aws", Value: 1}},
		{{Key: "pgp", Value: bson.D{}}},
		{{Key: "local", Value: bson.D{{Key: "key", Value: "?"}}}},
		{{Key: "aws", Value: bson.D{{Key: "accessKeyId", Value: ""}}}},
	} {
		doc, err := bson.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := ProvidersFromBSON(doc); err == nil {
			t.Errorf("%v: %v", bad, p)
		}
	}
}

// Nothing prints a secret.
func TestSecretsDoNotPrint(t *testing.T) {
	secret := "c0ffee"
	p := Providers{
		"local": Local{Key: []byte(secret)}, "aws": AWS{AccessKeyID: "id", SecretAccessKey: "c0ffee", SessionToken: "c0ffee"},
		"azure": Azure{ClientSecret: "c0ffee", AccessToken: "c0ffee"}, "gcp": GCP{PrivateKey: []byte(secret), AccessToken: "c0ffee"},
	}
	encoded, err := json.Marshal(struct{ Local, Azure, GCP any }{p["local"], p["azure"], p["gcp"]})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%e"} {
		texts = append(texts, fmt.Sprintf(verb, p))
		for _, provider := range p {
			texts = append(texts, fmt.Sprintf(verb, provider))
		}
	}
	for _, text := range texts {
		for _, shown := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprint([]byte(secret)), "YzBmZmVl"} {
			if strings.Contains(text, shown) {
				t.Errorf("%s shows a secret", text)
			}
		}
	}
}

func FuzzDocuments(f *testing.F) {
	f.Add(AppendMasterKey(nil, "aws", AWSKey{Region: "r", Key: "k"}))
	f.Add(AppendMasterKey(nil, "kmip:x", KMIPKey{ID: "1", Delegated: true}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if provider, key, err := MasterKeyFromBSON(data); err == nil {
			again, same, err := MasterKeyFromBSON(AppendMasterKey(nil, provider, key))
			if err != nil || again != provider || same != key {
				t.Errorf("%+v: written and read again: %+v, %v", key, same, err)
			}
		}
		if p, err := ProvidersFromBSON(data); err == nil {
			p.Check()
		}
	})
}

// TestPointers: a pointer to a provider or to a master key has its methods, too. It is refused, and
// not found out by a service that expects the value.
func TestPointers(t *testing.T) {
	for name, p := range map[string]Provider{"local": &Local{Key: make([]byte, LocalKeySize)}, "aws": &AWS{}, "azure": &Azure{}, "gcp": &GCP{},
		"kmip": &KMIP{Endpoint: "kmip.example.com"}, "aws:none": (*AWS)(nil)} {
		kind, _, _ := strings.Cut(name, ":")
		want := fmt.Sprintf("key service %q: it is a *kms.", name)
		if err := (Providers{name: p}).Check(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(strings.ToLower(err.Error()), "want a kms."+kind) {
			t.Errorf("%T: %v, want %q", p, err, want)
		}
	}
	for name, k := range map[string]MasterKey{"local": &LocalKey{}, "aws": &AWSKey{Region: "r", Key: "k"}, "azure": &AzureKey{VaultEndpoint: "v.example.com", Name: "n"},
		"gcp": &GCPKey{ProjectID: "p", Location: "l", KeyRing: "r", Name: "n"}, "kmip": &KMIPKey{}, "aws:none": (*AWSKey)(nil)} {
		if err := CheckMasterKey(name, k); err == nil || !strings.Contains(err.Error(), "it is a *kms.") {
			t.Errorf("%T: %v", k, err)
		}
	}
}
