package main

import (
	"testing"

	"allium/bson"
	"allium/internal/uri"
	"allium/mongotest"
)

func TestFlavours(t *testing.T) {
	for _, tt := range []struct {
		uri   string
		build bson.D
		level string // of what the doctor says; "" for nothing
		name  string
	}{
		{"mongodb://a.b.eu-west-1.docdb.amazonaws.com:27017/", nil, levelFail, "Amazon DocumentDB"},
		{"mongodb://A.B.EU-WEST-1.DOCDB.AMAZONAWS.COM/?retryWrites=false", nil, levelWarn, "Amazon DocumentDB"},
		{"mongodb://x.eu-west-1.docdb-elastic.amazonaws.com/?retryWrites=true", nil, levelFail, "Amazon DocumentDB"},
		{"mongodb://x.mongo.cosmos.azure.com:10255/?retryWrites=false", nil, levelWarn, "Azure Cosmos DB (request units)"},
		{"mongodb://fc-1.mongocluster.cosmos.azure.com/", nil, levelFail, "Azure DocumentDB (Cosmos DB by cores)"},
		{"mongodb://c0-shard-00-00.abc.mongodb.net/", nil, levelOK, "MongoDB Atlas"},
		{"mongodb://localhost/", bson.D{{Key: "version", Value: "7.0.77"}, {Key: "ferretdbVersion", Value: "v1.24.0"}}, levelWarn, "FerretDB"},
		{"mongodb://localhost/", bson.D{{Key: "version", Value: "7.0.77"}, {Key: "ferretdb", Value: bson.D{{Key: "version", Value: "v2.0.0"}}}}, levelWarn, "FerretDB"},
		{"mongodb://localhost/", bson.D{{Key: "version", Value: "8.0.1"}}, "", ""},
		{"mongodb://docdb.amazonaws.com.example.org/", nil, "", ""},
	} {
		cfg, err := uri.Parse(tt.uri)
		if err != nil {
			t.Fatal(err)
		}
		build, err := bson.Marshal(tt.build)
		if err != nil {
			t.Fatal(err)
		}
		var said []finding
		p := &patient{cfg: cfg, flavours: map[string]bool{}, report: func(f finding) { said = append(said, f) }}
		for range 2 { // it is said once
			p.flavour(cfg.Hosts[0], build)
		}
		switch f := flavourOf(cfg.Hosts[0], build); {
		case tt.level == "":
			if f != nil || len(said) > 0 {
				t.Errorf("%s: %v", tt.uri, said)
			}
		case f == nil || f.name != tt.name || len(said) != 1 || said[0].Level != tt.level:
			t.Errorf("%s: %v, want %s of %s", tt.uri, said, tt.level, tt.name)
		}
	}
}

// The doctor sees by what a server says of itself, too.
func TestDoctorNamesFlavour(t *testing.T) {
	d := mongotest.Start(t)
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name != "buildInfo" {
			return nil, nil
		}
		return bson.Marshal(bson.D{{Key: "version", Value: "7.0.77"}, {Key: "ferretdbVersion", Value: "v1.24.0"}, {Key: "ok", Value: 1}})
	})
	findings, status := examineDeployment(t, "mongodb://"+d.Hosts()[0]+"/")
	for _, f := range findings {
		if f.Check == "server" && f.Text == "this is FerretDB" && status == succeeded {
			return
		}
	}
	t.Errorf("status %d, %v", status, findings)
}
