package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// The media types of the OCI image format.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor points to a blob of an image.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// nobody is the user of the image, and whom its files belong to.
const nobody = 65534

// image makes an image of allium serve for the platforms of Linux among those that were built, as
// an archive of an OCI image layout: the same bytes from the same programs. It is what
// examples/service/Dockerfile builds. There is none if there is no such platform.
func (r *release) image(binaries []binary) (name string, archive []byte, err error) {
	blobs := map[string][]byte{}
	var order []string
	add := func(mediaType string, content []byte) descriptor {
		digest := fmt.Sprintf("%x", sha256.Sum256(content))
		if _, ok := blobs[digest]; !ok {
			order = append(order, digest)
		}
		blobs[digest] = content
		return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
	}
	addJSON := func(mediaType string, v any) (descriptor, error) {
		content, err := json.Marshal(v)
		return add(mediaType, content), err
	}
	var manifests []descriptor
	for _, b := range binaries {
		goos, goarch, _ := strings.Cut(b.platform, "/")
		if goos != "linux" {
			continue
		}
		unpacked, packed, err := layer(b)
		if err != nil {
			return "", nil, err
		}
		platform := map[string]string{"os": goos, "architecture": goarch}
		if goarch == "arm64" {
			platform["variant"] = "v8"
		}
		config, err := addJSON(typeConfig, r.imageConfig(platform, fmt.Sprintf("sha256:%x", sha256.Sum256(unpacked))))
		if err != nil {
			return "", nil, err
		}
		m, err := addJSON(typeManifest, map[string]any{"schemaVersion": 2, "mediaType": typeManifest, "config": config,
			"layers": []descriptor{add(typeLayer, packed)}})
		if err != nil {
			return "", nil, err
		}
		m.Platform = platform
		manifests = append(manifests, m)
	}
	if len(manifests) == 0 {
		return "", nil, nil
	}
	index := func(list ...descriptor) any {
		return map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": list}
	}
	all, err := addJSON(typeIndex, index(manifests...))
	if err != nil {
		return "", nil, err
	}
	number := r.version[1:]
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": number}
	entry, err := json.Marshal(index(all))
	if err != nil {
		return "", nil, err
	}
	files := []file{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", entry}}
	for _, digest := range order {
		files = append(files, file{"blobs/sha256/" + digest, blobs[digest]})
	}
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content)),
			Format: tar.FormatUSTAR}); err != nil {
			return "", nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return "", nil, err
		}
	}
	err = t.Close()
	return "allium_" + number + "_image.tar", out.Bytes(), err
}

// layer is the only layer of an image: the program, and the folders that it writes to or reads
// from.
func layer(b binary) (unpacked, packed []byte, err error) {
	var out, zipped bytes.Buffer
	t := tar.NewWriter(&out)
	for _, h := range []tar.Header{
		{Name: "allium", Mode: 0o755, Size: int64(len(b.content)), Typeflag: tar.TypeReg},
		{Name: "data/", Mode: 0o755, Typeflag: tar.TypeDir},
		{Name: "docker-entrypoint-initdb.d/", Mode: 0o755, Typeflag: tar.TypeDir},
		{Name: "tmp/", Mode: 0o1777, Typeflag: tar.TypeDir},
	} {
		h.Uid, h.Gid, h.Format = nobody, nobody, tar.FormatUSTAR
		if err := t.WriteHeader(&h); err != nil {
			return nil, nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := t.Write(b.content); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := t.Close(); err != nil {
		return nil, nil, err
	}
	g := gzip.NewWriter(&zipped)
	if _, err := g.Write(out.Bytes()); err != nil {
		return nil, nil, err
	}
	err = g.Close()
	return out.Bytes(), zipped.Bytes(), err
}

// imageConfig says how the image runs. It has no time: it is the same whenever it is made.
func (r *release) imageConfig(platform map[string]string, layer string) any {
	const second = 1_000_000_000
	user := fmt.Sprintf("%d:%[1]d", nobody)
	config := map[string]any{
		"config": map[string]any{
			"User": user, "ExposedPorts": map[string]any{"27017/tcp": struct{}{}},
			"Volumes":    map[string]any{"/data": struct{}{}},
			"Entrypoint": []string{"/allium"}, "Cmd": []string{"serve", "--bind", "0.0.0.0", "--log", "json"},
			"StopSignal": "SIGTERM", "WorkingDir": "/",
			// Not of the format, but what builders write and runtimes read.
			"Healthcheck": map[string]any{"Test": []string{"CMD", "/allium", "healthcheck"}, "Interval": 2 * second,
				"Timeout": 3 * second, "StartPeriod": 10 * second},
			"Labels": map[string]string{
				"org.opencontainers.image.version":  r.version[1:],
				"org.opencontainers.image.revision": r.commit,
				"org.opencontainers.image.source":   "https://" + r.modules[0].path,
			},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer}},
	}
	for k, v := range platform {
		config[k] = v
	}
	return config
}
