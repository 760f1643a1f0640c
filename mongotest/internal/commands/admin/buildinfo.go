package admin

import (
	"runtime"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
)

func init() {
	server.Register(&server.Command{
		Name: "buildInfo", Aliases: []string{"buildinfo"}, Help: "get version #, etc.\n{ buildinfo:1 }", NoAuth: true, DataLake: true,
		Where: server.Anywhere, Run: runBuildInfo,
	})
}

func runBuildInfo(r *server.Request, dst []byte) ([]byte, error) {
	v := r.Node.Config().Version
	dst = bson.AppendString(dst, "version", v.String())
	dst = bson.AppendString(dst, "gitVersion", "0000000000000000000000000000000000000000")
	dst = bsondoc.AppendStrings(dst, "modules", nil)
	dst = bson.AppendString(dst, "allocator", "go")
	engine := "mozjs"
	if r.Node.Config().NoScripting {
		engine = "none"
	}
	dst = bson.AppendString(dst, "javascriptEngine", engine)
	dst = bson.AppendString(dst, "sysInfo", "deprecated")
	at, dst := bson.BeginArrayElement(dst, "versionArray")
	for i, n := range []int{v.Major, v.Minor, v.Patch, 0} {
		dst = bson.AppendInt32Value(bson.AppendIndexHeader(dst, bson.TypeInt32, i), int32(n))
	}
	dst = bson.EndDocument(dst, at)
	at, dst = bson.BeginDocumentElement(dst, "openssl")
	dst = bson.AppendString(dst, "running", "disabled")
	dst = bson.EndDocument(dst, at)
	at, dst = bson.BeginDocumentElement(dst, "buildEnvironment")
	dst = bson.AppendString(dst, "target_arch", runtime.GOARCH)
	dst = bson.AppendString(dst, "target_os", runtime.GOOS)
	dst = bson.EndDocument(dst, at)
	if r.Node.Config().DataLake {
		lake, d := bson.BeginDocumentElement(dst, "dataLake")
		dst = bson.EndDocument(bson.AppendString(d, "version", v.String()), lake)
	}
	dst = bson.AppendInt32(dst, "bits", 64)
	dst = bson.AppendBool(dst, "debug", false)
	dst = bson.AppendInt32(dst, "maxBsonObjectSize", server.MaxBSONObjectSize)
	return bsondoc.AppendStrings(dst, "storageEngines", []string{"wiredTiger"}), nil
}
