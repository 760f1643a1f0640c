package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// unpacked returns the files of a tar archive, folders with a slash at the end.
func unpacked(t *testing.T, archive []byte) (files map[string][]byte, heads map[string]*tar.Header) {
	t.Helper()
	files, heads = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, heads
		}
		content, readErr := io.ReadAll(r)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		files[h.Name], heads[h.Name] = content, h
	}
}

// A ociImage is an image as who runs it reads it: each blob is looked up by its digest.
type ociImage struct {
	files map[string][]byte
	used  map[string]bool
}

func (i *ociImage) blob(t *testing.T, d descriptor) []byte {
	t.Helper()
	name := "blobs/" + strings.Replace(d.Digest, ":", "/", 1)
	content, ok := i.files[name]
	if !ok || len(content) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(content)) != d.Digest {
		t.Fatalf("%+v: there %v, %d bytes", d, ok, len(content))
	}
	i.used[name] = true
	return content
}

func (i *ociImage) json(t *testing.T, d descriptor, mediaType string, v any) {
	t.Helper()
	if err := json.Unmarshal(i.blob(t, d), v); err != nil || d.MediaType != mediaType {
		t.Fatalf("%+v: %v", d, err)
	}
}

type ociIndex struct {
	SchemaVersion int
	MediaType     string
	Manifests     []descriptor
}

// open reads an archive of an image, and returns the manifests of its platforms.
func open(t *testing.T, archive []byte, version string) (*ociImage, []descriptor) {
	t.Helper()
	i := &ociImage{used: map[string]bool{"oci-layout": true, "index.json": true}}
	i.files, _ = unpacked(t, archive)
	if string(i.files["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: %s", i.files["oci-layout"])
	}
	var entry, index ociIndex
	if err := json.Unmarshal(i.files["index.json"], &entry); err != nil || entry.SchemaVersion != 2 || len(entry.Manifests) != 1 || entry.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("%s, %v", i.files["index.json"], err)
	}
	i.json(t, entry.Manifests[0], typeIndex, &index)
	if index.SchemaVersion != 2 || index.MediaType != typeIndex {
		t.Errorf("%+v", index)
	}
	return i, index.Manifests
}

// image checks the image of a platform, and returns the files of its layer and how it is started.
func (i *ociImage) image(t *testing.T, m descriptor) (files map[string][]byte, heads map[string]*tar.Header, args []string) {
	t.Helper()
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	i.json(t, m, typeManifest, &manifest)
	var config struct {
		OS, Architecture string
		Config           struct {
			User            string
			Entrypoint, Cmd []string
			ExposedPorts    map[string]any
			Labels          map[string]string
			Healthcheck     struct{ Test []string }
		}
		RootFS struct {
			Type    string
			DiffIDs []string `json:"diff_ids"`
		}
	}
	i.json(t, manifest.Config, typeConfig, &config)
	if config.OS != m.Platform["os"] || config.Architecture != m.Platform["architecture"] || config.Config.User != "65534:65534" || len(config.Config.ExposedPorts) != 1 || !slices.Equal(config.Config.Healthcheck.Test, []string{"CMD", "/allium", "healthcheck"}) {
		t.Errorf("%+v of %v", config, m.Platform)
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != typeLayer {
		t.Fatalf("%+v", manifest.Layers)
	}
	g, err := gzip.NewReader(bytes.NewReader(i.blob(t, manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(g)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}; config.RootFS.Type != "layers" || !slices.Equal(config.RootFS.DiffIDs, want) {
		t.Errorf("%+v, want %q", config.RootFS, want)
	}
	files, heads = unpacked(t, layer)
	return files, heads, append(config.Config.Entrypoint, config.Config.Cmd...)
}

// checkImage checks the image of a release, whose program is run as the image says.
func checkImage(t *testing.T, out, host string) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has an image")
	}
	archive, err := os.ReadFile(filepath.Join(out, "allium_0.2.1_image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	i, manifests := open(t, archive, "0.2.1")
	if len(manifests) != 1 || manifests[0].Platform["os"]+"/"+manifests[0].Platform["architecture"] != host {
		t.Fatalf("%+v, want %s", manifests, host)
	}
	files, heads, args := i.image(t, manifests[0])
	program := filepath.Join(t.TempDir(), "allium")
	if err := os.WriteFile(program, files["allium"], os.FileMode(heads["allium"].Mode)); err != nil {
		t.Fatal(err)
	}
	if args[0] != "/allium" {
		t.Fatalf("it starts %q", args)
	}
	if got := run(t, "", nil, program, args[1:]...); got != "small [serve --bind 0.0.0.0 --log json]" {
		t.Errorf("it prints %q", got)
	}
	sums, _ := os.ReadFile(filepath.Join(out, "checksums.txt"))
	if want := fmt.Sprintf("%x  allium_0.2.1_image.tar\n", sha256.Sum256(archive)); !strings.Contains(string(sums), want) {
		t.Errorf("%s", sums)
	}
}

// TestImage: an image has the platforms of Linux and no others, nothing that nobody points to, and
// is the same when it is made again.
func TestImage(t *testing.T) {
	r := &release{version: "v1.2.3", commit: "c0ffee", modules: []module{{path: "example.com/Garden/allium"}}}
	built := []binary{{"darwin/arm64", "allium", []byte("of a Mac")}, {"linux/amd64", "allium", []byte("of amd64")}, {"linux/arm64", "allium", []byte("of arm64")}, {"windows/amd64", "allium.exe", []byte("of Windows")}}
	name, archive, err := r.image(built)
	if err != nil || name != "allium_1.2.3_image.tar" {
		t.Fatal(name, err)
	}
	if _, again, err := r.image(built); err != nil || !bytes.Equal(again, archive) {
		t.Errorf("made again, it is another one: %v", err)
	}
	i, manifests := open(t, archive, "1.2.3")
	var platforms []string
	for _, m := range manifests {
		platforms = append(platforms, m.Platform["os"]+"/"+m.Platform["architecture"]+m.Platform["variant"])
		files, heads, _ := i.image(t, m)
		if string(files["allium"]) != "of "+m.Platform["architecture"] {
			t.Errorf("%v: %q", m.Platform, files["allium"])
		}
		if mode := heads["tmp/"].Mode; len(files) != 4 || mode != 0o1777 || heads["data/"].Uid != nobody || heads["docker-entrypoint-initdb.d/"] == nil {
			t.Errorf("%v: %d files, /tmp has mode %o, %+v", m.Platform, len(files), mode, heads["data/"])
		}
	}
	if want := []string{"linux/amd64", "linux/arm64v8"}; !slices.Equal(platforms, want) {
		t.Errorf("%q, want %q", platforms, want)
	}
	for name := range i.files {
		if !i.used[name] {
			t.Errorf("nothing points to %s", name)
		}
	}
	if name, archive, err := r.image(built[:1]); name != "" || archive != nil || err != nil {
		t.Errorf("without Linux: %q, %d bytes, %v", name, len(archive), err)
	}
}
