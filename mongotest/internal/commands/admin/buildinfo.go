package admin

import (
	"runtime"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
)

func init() {
	server.Register(&server.Command{
		Name: "buildInfo", Aliases: []string{"buildinfo"}, Help: "get version #, etc.\n{ buildinfo:1 }", NoAuth: true,
		OpQuery: true, DataLake: true,
		Where: server.Anywhere, Run: runBuildInfo,
	})
}

func runBuildInfo(r *server.Request, dst []byte) ([]byte, error) {
	if err := args.CheckParsed(r, r.Cmd.Name); err != nil {
		return dst, err
	}
	v := r.Version()
	dst = bsondoc.Append(dst, "version", v.String(), "gitVersion", "0000000000000000000000000000000000000000")
	dst = bsondoc.AppendStrings(dst, "modules", nil)
	dst = bson.AppendString(dst, "allocator", "go")
	engine := "mozjs"
	if r.Node.Config().NoScripting {
		engine = "none"
	}
	dst = bsondoc.Append(dst, "javascriptEngine", engine, "sysInfo", "deprecated")
	at, dst := bson.BeginArrayElement(dst, "versionArray")
	for i, n := range []int{v.Major, v.Minor, v.Patch, 0} {
		dst = bson.AppendInt32Value(bson.AppendIndexHeader(dst, bson.TypeInt32, i), int32(n))
	}
	dst = bson.EndDocument(dst, at)
	dst = bsondoc.Append(dst, "openssl", bsondoc.Of("running", "disabled"),
		"buildEnvironment", bsondoc.Of("target_arch", runtime.GOARCH, "target_os", runtime.GOOS))
	if r.Node.Config().DataLake {
		lake, d := bson.BeginDocumentElement(dst, "dataLake")
		dst = bson.EndDocument(bson.AppendString(d, "version", v.String()), lake)
	}
	return bsondoc.Append(dst, "bits", int32(64), "debug", false,
		"maxBsonObjectSize", int32(server.MaxBSONObjectSize), "storageEngines", []string{"wiredTiger"}), nil
}
