package main

import (
	"crypto/tls"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// fields writes the exported fields of a struct that are not zero.
func fields(s any) string {
	v := reflect.ValueOf(s).Elem()
	var parts []string
	for f, x := range v.Fields() {
		if !f.IsExported() || x.IsZero() || f.Name == "HTTPClient" {
			continue
		}
		text := ""
		switch y := x.Interface().(type) {
		case *tls.Config:
			text = fmt.Sprint(y.InsecureSkipVerify, y.MinVersion, y.RootCAs != nil, len(y.Certificates))
		case *writeconcern.WriteConcern:
			text = fields(y)
		case fmt.Stringer:
			text = y.String()
		case *bson.Registry, func() string:
			text = "there"
		default:
			if x.Kind() == reflect.Pointer && x.Elem().Kind() == reflect.Struct {
				text = "{" + fields(x.Interface()) + "}"
				break
			}
			for x.Kind() == reflect.Pointer || x.Kind() == reflect.Interface {
				x = x.Elem()
			}
			text = fmt.Sprintf("%+v", x)
		}
		parts = append(parts, f.Name+"="+text)
	}
	return strings.Join(parts, " ")
}

// clientOptions prints what connection strings and settings of clients say.
func clientOptions() {
	for i, s := range connectionStrings {
		u, err := connstring.Parse(s)
		if err != nil {
			say(fmt.Sprint("parse ", i, " ", s), err)
		} else {
			say(fmt.Sprint("parse ", i, " ", s), fields(u), u.HasAuthParameters(), u.String() == s, u.Validate())
		}
		c := options.Client().ApplyURI(s)
		say(fmt.Sprint("apply ", i, " ", s), fields(c), c.Validate(), c.GetURI() == s)
	}
	say("connect modes", connstring.AutoConnect, connstring.SingleConnect, connstring.ConnectMode(5),
		connstring.IsValidServerMonitoringMode("x"))
	oidc := func(c options.Credential) *options.ClientOptions {
		c.AuthMechanism = "MONGODB-OIDC"
		return options.Client().SetAuth(c)
	}
	for i, c := range []*options.ClientOptions{
		options.Client(), options.Client().SetMaxPoolSize(1).SetMinPoolSize(2),
		options.Client().SetMaxPoolSize(0).SetMinPoolSize(2),
		options.Client().SetDirect(true).SetHosts([]string{"a", "b"}),
		options.Client().SetLoadBalanced(true).SetHosts([]string{"a", "b"}),
		options.Client().SetLoadBalanced(true).SetReplicaSet("x"),
		options.Client().SetLoadBalanced(true).SetDirect(true), options.Client().SetSRVMaxHosts(1),
		options.Client().SetSRVMaxHosts(1).SetReplicaSet("x"), options.Client().SetSRVMaxHosts(1).SetLoadBalanced(true),
		options.Client().SetServerMonitoringMode("x"),
		options.Client().SetServerAPIOptions(options.ServerAPI("2")), options.Client().SetTimeout(-1),
		options.Client().SetHeartbeatInterval(time.Millisecond),
		options.Client().SetWriteConcern(&writeconcern.WriteConcern{W: -1}),
		options.Client().SetAuth(options.Credential{AuthMechanism: "X"}),
		options.Client().SetCompressors([]string{"x"}),
		options.Client().SetZlibLevel(99), options.Client().SetConnectTimeout(-1),
		options.Client().SetRegistry(bson.NewRegistry()), options.Client().SetReadPreference(readpref.Nearest()),
		oidc(options.Credential{}),
		oidc(options.Credential{AuthMechanismProperties: map[string]string{"ENVIRONMENT": "azure"}}),
		oidc(options.Credential{AuthMechanismProperties: map[string]string{"ENVIRONMENT": "test"}}),
		options.Client().SetServerAPIOptions(options.ServerAPI("1").SetStrict(true)),
	} {
		say(fmt.Sprint("client ", i), fields(c), c.Validate())
	}
	a, b := options.Client().ApplyURI("mongodb://a/?appName=x&maxPoolSize=5"),
		options.Client().SetAppName("y").SetTimeout(time.Second)
	bad := options.Client().ApplyURI("x")
	for i, m := range []*options.ClientOptions{
		options.MergeClientOptions(), options.MergeClientOptions(a), options.MergeClientOptions(a, nil, b),
		options.MergeClientOptions(b, a), options.MergeClientOptions(bad, b), options.MergeClientOptions(b, bad),
		options.Client().ApplyURI("mongodb://a/?w=1&appName=q").ApplyURI("mongodb://b/?journal=true"),
		options.Client().ApplyURI("x").ApplyURI("mongodb://b"),
	} {
		say(fmt.Sprint("merged ", i), fields(m), m.Validate(), m.GetURI(), m == a)
	}
	for i, b := range []*options.CreateIndexesOptionsBuilder{
		options.CreateIndexes().SetCommitQuorumInt(3), options.CreateIndexes().SetCommitQuorumMajority(),
		options.CreateIndexes().SetCommitQuorumString("x"), options.CreateIndexes().SetCommitQuorumVotingMembers(),
	} {
		var o options.CreateIndexesOptions
		for _, set := range b.List() {
			say(fmt.Sprint("quorum ", i), set(&o), fmt.Sprintf("%T", o.CommitQuorum), o.CommitQuorum)
		}
	}
	l := options.Logger()
	l.SetComponentLevel(options.LogComponentAll, options.LogLevelDebug).SetComponentLevel(options.LogComponentCommand,
		options.LogLevelInfo).SetMaxDocumentLength(5)
	say("logger", fmt.Sprintf("%+v", *l), options.LogComponentTopology, options.LogComponentServerSelection,
		options.LogComponentConnection)
	for _, o := range []map[string]any{{}, {"x": 1}, {"tlsCAFile": 1}, {"tlsCAFile": "/nonexistent"},
		{"tlsCertificateKeyFile": "/nonexistent"}, {"tlsCertificateKeyFile": 5}} {
		c, err := options.BuildTLSConfig(o)
		say(fmt.Sprint("TLS of ", o), c != nil && c.MinVersion == tls.VersionTLS12, err)
	}
	setters()
}

// setters calls every setter of every builder with a value, and prints what the options are then.
func setters() {
	for _, b := range []any{
		options.Aggregate(), options.GridFSBucket(), options.BulkWrite(), options.ChangeStream(),
		options.ClientBulkWrite(), options.ClientEncryption(), options.Collection(), options.Count(),
		options.CreateCollection(), options.CreateView(), options.DataKey(), options.Database(), options.DefaultIndex(),
		options.DeleteMany(), options.DeleteOne(), options.Distinct(),
		options.DropCollection(), options.DropIndexes(), options.Encrypt(), options.EstimatedDocumentCount(),
		options.FindOneAndDelete(), options.FindOneAndReplace(), options.FindOneAndUpdate(),
		options.FindOne(), options.Find(), options.GridFSFind(), options.GridFSName(), options.GridFSUpload(),
		options.Index(), options.InsertMany(), options.InsertOne(), options.ListCollections(),
		options.ListDatabases(), options.ListIndexes(), options.Range(), options.Replace(), options.RewrapManyDataKey(),
		options.RunCmd(), options.SearchIndexes(), options.Session(), options.String(),
		options.TimeSeries(), options.Transaction(), options.UpdateMany(), options.UpdateOne(),
		options.AutoEncryption(), options.Client(),
	} {
		v := reflect.ValueOf(b)
		if o := applied(v); o.IsValid() {
			client := o.Elem().FieldByName("HTTPClient")
			say("set nothing of "+v.Type().Elem().Name(), fields(o.Interface()), client.IsValid() && !client.IsZero())
		}
		var names []string
		for m := range v.Type().Methods() {
			if strings.HasPrefix(m.Name, "Set") && m.Type.NumIn() == 2 {
				names = append(names, m.Name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			m := v.MethodByName(name)
			m.Call([]reflect.Value{filled(m.Type().In(0))})
		}
		if o := applied(v); o.IsValid() {
			say("set all of "+v.Type().Elem().Name(), fields(o.Interface()))
		} else {
			say("set all of "+v.Type().Elem().Name(), fields(b))
		}
	}
}

// applied returns a pointer to the options that a builder has collected, the zero Value if b is
// none.
func applied(b reflect.Value) reflect.Value {
	list := b.MethodByName("List")
	if !list.IsValid() {
		return reflect.Value{}
	}
	functions := list.Call(nil)[0]
	o := reflect.New(functions.Type().Elem().In(0).Elem())
	for i := range functions.Len() {
		functions.Index(i).Call([]reflect.Value{o})
	}
	return o
}

// filled returns a value of a type that is not zero.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.Interface:
		if t.NumMethod() == 0 {
			v.Set(reflect.ValueOf("any"))
		}
	}
	return v
}
