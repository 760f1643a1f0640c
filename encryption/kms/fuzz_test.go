package kms

import (
	"bytes"
	"testing"

	"allium/bson"
)

// FuzzMasterKey takes any bytes as the master key of a data key, which lies in the key vault: what
// can be read is checked, and is the same when it is written and read again.
func FuzzMasterKey(f *testing.F) {
	for provider, key := range map[string]MasterKey{
		"local": LocalKey{}, "aws:x": AWSKey{Region: "r", Key: "k", Endpoint: "a.b:443"}, "azure": AzureKey{VaultEndpoint: "https://a.b/c", Name: "n", Version: "v"},
		"gcp": GCPKey{ProjectID: "p", Location: "l", KeyRing: "r", Name: "n", Version: "1"}, "kmip": KMIPKey{ID: "1", Endpoint: "[::1]:1", Delegated: true},
	} {
		f.Add([]byte(AppendMasterKey(nil, provider, key)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		provider, key, err := MasterKeyFromBSON(bson.Raw(data))
		if err != nil || CheckMasterKey(provider, key) != nil {
			return
		}
		doc := AppendMasterKey(nil, provider, key)
		again, other, err := MasterKeyFromBSON(doc)
		if err != nil || again != provider || other != key || !bytes.Equal(AppendMasterKey(nil, again, other), doc) {
			t.Errorf("%q %+v is written as %s and read as %q %+v, %v", provider, key, doc, again, other, err)
		}
	})
}
