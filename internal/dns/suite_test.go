package dns

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"allium/auth"
	"allium/internal/spectest"
	"allium/internal/uri"
)

// The files of Initial DNS Seedlist Discovery, up to the seeds and the options. That the seeds lead
// to the deployment is tested with the client.
func TestSeedlistSuite(t *testing.T) {
	resolver := nameServer(t, zone+srvSuite, false)
	for _, file := range spectest.Files(t, "initial-dns-seedlist-discovery/tests/*/*.json") {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var tt struct {
				URI, Comment string
				Seeds        []string
				NumSeeds     *int
				Options      map[string]any
				Parsed       map[string]any `json:"parsed_options"`
				Error        bool

				Hosts, NumHosts, Ping any // what the seeds lead to
			}
			spectest.Decode(t, file, &tt)
			c, err := resolve(t, resolver, tt.URI)
			if tt.Error {
				if err == nil {
					t.Errorf("%s: no error", tt.URI)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.URI, err)
			}
			slices.Sort(c.Hosts)
			slices.Sort(tt.Seeds)
			if tt.NumSeeds != nil && len(c.Hosts) != *tt.NumSeeds {
				t.Errorf("%s: seeds %q, want %d", tt.URI, c.Hosts, *tt.NumSeeds)
			}
			if len(tt.Seeds) > 0 && !slices.Equal(c.Hosts, tt.Seeds) {
				t.Errorf("%s: seeds %q, want %q", tt.URI, c.Hosts, tt.Seeds)
			}
			checkOptions(t, c, tt.Options)
			checkOptions(t, c, tt.Parsed)
		})
	}
}

func resolve(t *testing.T, r Resolver, s string) (*uri.Config, error) {
	c, err := uri.Parse(s)
	if err != nil {
		return nil, err
	}
	list, err := Lookup(t.Context(), r, c.SRVServiceName, c.SRVHost)
	if err != nil {
		return nil, err
	}
	limit := 0
	if c.SRVMaxHosts != nil {
		limit = *c.SRVMaxHosts
	}
	if err := c.ApplySRV(Limit(list.Hosts, limit), list.TXT); err != nil {
		return nil, err
	}
	return c, c.Validate()
}

func checkOptions(t *testing.T, c *uri.Config, want map[string]any) {
	t.Helper()
	credential := auth.Credential{}
	if c.Credential != nil {
		credential = *c.Credential
	}
	got := map[string]any{
		"replicaSet": c.ReplicaSet, "authSource": c.AuthSource(), "ssl": c.TLSEnabled(), "srvServiceName": c.SRVServiceName,
		"user": credential.Username, "password": string(credential.Password), "db": c.Database, "defaultDatabase": c.Database,
	}
	for name, p := range map[string]*bool{"loadBalanced": c.LoadBalanced, "directConnection": c.Direct} {
		if p != nil {
			got[name] = *p
		}
	}
	if c.SRVMaxHosts != nil {
		got["srvMaxHosts"] = *c.SRVMaxHosts
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || fmt.Sprint(g) != fmt.Sprint(v) {
			t.Errorf("option %s is %v, want %v", name, g, v)
		}
	}
}
