package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
)

// component is one of a bill of materials, in the form of CycloneDX.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOfMaterials lists what a program was built of, as CycloneDX: the modules whose packages are
// in it, and the standard library. It is the same whenever it is made: it has no time, and its
// serial number comes of what it lists.
func billOfMaterials(info *buildinfo.BuildInfo, version string) ([]byte, error) {
	purl := func(path, version string) string { return "pkg:golang/" + path + "@" + version }
	program := component{Type: "application", Ref: purl(info.Main.Path, version), Name: info.Path, Version: version,
		PURL: purl(info.Main.Path, version)}
	standard := strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{{Type: "library", Ref: purl("std", standard), Name: "std", Version: standard,
		PURL: purl("std", standard)}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: that is not what anybody gets", dep.Path, dep.Replace.Path)
		}
		parts = append(parts, component{Type: "library", Ref: purl(dep.Path, dep.Version), Name: dep.Path,
			Version: dep.Version, PURL: purl(dep.Path, dep.Version),
			Properties: []property{{"go:sum", dep.Sum}}})
	}
	refs := make([]string, len(parts))
	for i, p := range parts {
		refs[i] = p.Ref
	}
	sum := sha256.Sum256([]byte(program.Ref + " " + strings.Join(refs, " ")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
	type dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
	return indented(struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     any          `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}{
		"CycloneDX", "1.6", fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]),
		1,
		map[string]component{"component": program}, parts, []dependency{{program.Ref, refs}},
	})
}

// subject is an artefact and its hash, in hexadecimal.
type subject struct{ name, sha256 string }

// provenance says how the artefacts came to be: an in-toto statement with SLSA's predicate. Nobody
// has signed it: whoever wants to know builds again, which the parameters suffice for.
func (r *release) provenance(subjects []subject, info *buildinfo.BuildInfo) ([]byte, error) {
	type digest map[string]string
	type resource struct {
		Name   string `json:"name,omitempty"`
		URI    string `json:"uri,omitempty"`
		Digest digest `json:"digest,omitempty"`
	}
	var list []resource
	for _, s := range subjects {
		list = append(list, resource{Name: s.name, Digest: digest{"sha256": s.sha256}})
	}
	root := r.modules[0]
	return indented(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       list,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType": "https://" + root.path + "/tools/release",
				"externalParameters": map[string]any{
					"version":   r.version,
					"platforms": r.platforms,
					"command": "CGO_ENABLED=0 go install " + strings.Join(flags, " ") + " " + root.path +
						"/cmd/allium@" + r.version,
					"go": info.GoVersion,
				},
				"resolvedDependencies": []resource{{URI: "git+https://" + root.path,
					Digest: digest{"gitCommit": r.commit}}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": r.builder}},
		},
	})
}

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}
