package conn

import (
	"os"
	"strconv"
	"strings"

	"allium/bson"
)

// environment is what the driver sees around it: the operating system, the function-as-a-service
// platform that runs it ("" for none), and the container.
type environment struct {
	os           osInfo
	faas         string
	region       string
	memoryMB     *int32
	timeoutSec   *int32
	runtime      string
	orchestrator string
}

// dockerMarker is a file that exists in the root of a Docker container.
var dockerMarker = "/.dockerenv"

func readEnvironment() environment {
	e := environment{os: readOS(), faas: FaaS()}
	switch e.faas {
	case "aws.lambda":
		e.region = envString("AWS_REGION")
		e.memoryMB = envInt32("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
	case "gcp.func":
		e.region = envString("FUNCTION_REGION")
		e.memoryMB = envInt32("FUNCTION_MEMORY_MB")
		e.timeoutSec = envInt32("FUNCTION_TIMEOUT_SEC")
	case "vercel":
		e.region = envString("VERCEL_REGION")
	}
	if _, err := os.Stat(dockerMarker); err == nil {
		e.runtime = "docker"
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		e.orchestrator = "kubernetes"
	}
	return e
}

// FaaS returns the function-as-a-service platform that the process runs on ("aws.lambda",
// "azure.func", "gcp.func", "vercel"), as its environment variables tell, or "" if it is none, or
// more than one.
func FaaS() string {
	found := ""
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"aws.lambda", strings.HasPrefix(os.Getenv("AWS_EXECUTION_ENV"), "AWS_Lambda_") ||
			os.Getenv("AWS_LAMBDA_RUNTIME_API") != ""},
		{"azure.func", os.Getenv("FUNCTIONS_WORKER_RUNTIME") != ""},
		{"gcp.func", os.Getenv("K_SERVICE") != "" || os.Getenv("FUNCTION_NAME") != ""},
		{"vercel", os.Getenv("VERCEL") != ""},
	} {
		switch {
		case !p.set:
		case found == "", found == "aws.lambda" && p.name == "vercel":
			found = p.name
		default:
			return ""
		}
	}
	return found
}

func envString(name string) string { return strings.ToValidUTF8(os.Getenv(name), "") }

func envInt32(name string) *int32 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 32)
	if err != nil {
		return nil
	}
	v := int32(n)
	return &v
}

// append appends the env document, or nothing if it would be empty.
func (e *environment) append(dst []byte) []byte {
	if e.faas == "" && e.runtime == "" && e.orchestrator == "" {
		return dst
	}
	env, dst := bson.BeginDocumentElement(dst, "env")
	dst = appendSet(dst, "name", e.faas)
	if e.timeoutSec != nil {
		dst = bson.AppendInt32(dst, "timeout_sec", *e.timeoutSec)
	}
	if e.memoryMB != nil {
		dst = bson.AppendInt32(dst, "memory_mb", *e.memoryMB)
	}
	dst = appendSet(dst, "region", e.region)
	if e.runtime != "" || e.orchestrator != "" {
		container, out := bson.BeginDocumentElement(dst, "container")
		out = appendSet(out, "runtime", e.runtime)
		out = appendSet(out, "orchestrator", e.orchestrator)
		dst = bson.EndDocument(out, container)
	}
	return bson.EndDocument(dst, env)
}
