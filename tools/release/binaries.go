package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// binary is the command allium for a platform.
type binary struct {
	platform string // "linux/amd64"
	name     string // of the program: allium, or allium.exe
	content  []byte
}

// binaries builds the command for every platform, and writes the archives and what tells of them.
func (r *release) binaries(proxy, temp string) error {
	built := map[string][]byte{}
	var programs []binary
	var sums []subject
	var info *buildinfo.BuildInfo
	extras, err := r.extras(proxy, temp)
	if err != nil {
		return err
	}
	for _, platform := range r.platforms {
		b, err := r.build(platform, proxy, filepath.Join(temp, "first"), "")
		if err != nil {
			return err
		}
		// Of the second build nothing is there already, and it lies elsewhere.
		again, err := r.build(platform, proxy, filepath.Join(temp, "second"), filepath.Join(temp, "nothing"))
		if err != nil {
			return err
		}
		if !bytes.Equal(b.content, again.content) {
			return fmt.Errorf("%s: built twice, the command is not the same", platform)
		}
		if info, err = buildinfo.Read(bytes.NewReader(b.content)); err != nil {
			return err
		}
		if info.Main.Version != r.version {
			return fmt.Errorf("%s: the command says that its version is %s", platform, info.Main.Version)
		}
		name, archive, err := pack(b, r.version, extras)
		if err != nil {
			return err
		}
		built[name] = archive
		programs = append(programs, b)
		sums = append(sums, subject{name, fmt.Sprintf("%x", sha256.Sum256(archive))})
		fmt.Fprintf(r.log, "%s: twice the same, %d bytes\n", platform, len(b.content))
	}
	if info == nil {
		return errors.New("no platforms")
	}
	switch name, archive, err := r.image(programs); {
	case err != nil:
		return err
	case archive != nil:
		built[name] = archive
		sums = append(sums, subject{name, fmt.Sprintf("%x", sha256.Sum256(archive))})
	}
	bill, err := billOfMaterials(info, r.version)
	if err != nil {
		return err
	}
	const billName = "allium.cdx.json"
	built[billName] = bill
	sums = append(sums, subject{billName, fmt.Sprintf("%x", sha256.Sum256(bill))})
	slices.SortFunc(sums, func(a, b subject) int { return strings.Compare(a.name, b.name) })
	var checksums strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&checksums, "%s  %s\n", s.sha256, s.name)
	}
	built["checksums.txt"] = []byte(checksums.String())
	if built["provenance.json"], err = r.provenance(sums, info); err != nil {
		return err
	}
	for name, content := range built {
		if err := os.WriteFile(filepath.Join(r.out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// flags are those that the command is built with, besides the platform's.
var flags = []string{"-trimpath", "-ldflags=-s"}

// build installs the command from the proxy, as anybody can: the files of a checkout are not
// looked at. It uses the folder dir, and the cache of builds that is given, if one is.
func (r *release) build(platform, proxy, dir, cache string) (binary, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return binary{}, fmt.Errorf("%q is no platform such as linux/amd64", platform)
	}
	// What else the command needs is got from where this machine gets it, or is here already.
	known, err := command("", nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return binary{}, err
	}
	elsewhere, err := command("", nil, "go", "env", "GOPROXY")
	if err != nil {
		return binary{}, err
	}
	root := r.modules[0]
	env := []string{
		"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
		"GOBIN=",
		"GONOSUMDB=" + root.path, "GOPATH=" + dir, "GOMODCACHE=" + filepath.Join(dir, "mod"),
		"GOPROXY=" + fileURL(proxy) + "," + fileURL(filepath.Join(known, "cache", "download")) + "," + elsewhere,
	}
	if cache != "" {
		env = append(env, "GOCACHE="+cache)
	}
	args := append(append([]string{"install"}, flags...), root.path+"/cmd/allium@"+r.version)
	if _, err := command("", env, "go", args...); err != nil {
		return binary{}, fmt.Errorf("%s: %w", platform, err)
	}
	b := binary{platform: platform, name: "allium"}
	if goos == "windows" {
		b.name += ".exe"
	}
	at := filepath.Join(dir, "bin", goos+"_"+goarch, b.name)
	if platform == runtime.GOOS+"/"+runtime.GOARCH {
		at = filepath.Join(dir, "bin", b.name)
	}
	b.content, err = os.ReadFile(at)
	return b, err
}

// extras returns what stands beside the program in an archive: the licence, the completions of
// shells and the manual's page, which the program itself writes.
func (r *release) extras(proxy, temp string) ([]file, error) {
	here, err := r.build(runtime.GOOS+"/"+runtime.GOARCH, proxy, filepath.Join(temp, "first"), "")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(temp, here.name)
	if err := os.WriteFile(program, here.content, 0o755); err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.tree, "LICENSE"))
	if err != nil {
		return nil, err
	}
	list := []file{{"LICENSE", licence}}
	for name, args := range map[string][]string{
		"completions/allium.bash": {"completion", "bash"}, "completions/_allium": {"completion", "zsh"},
		"completions/allium.fish": {"completion", "fish"},
		"man/allium.1":            {"man"},
	} {
		out, err := command("", nil, program, args...)
		if err != nil {
			return nil, err
		}
		list = append(list, file{name, []byte(out + "\n")})
	}
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// pack makes the archive of a platform: the same bytes from the same files.
func pack(b binary, version string, extras []file) (name string, archive []byte, err error) {
	folder := "allium_" + version[1:] + "_" + strings.ReplaceAll(b.platform, "/", "_")
	files := append([]file{{b.name, b.content}}, extras...)
	var out bytes.Buffer
	if strings.HasPrefix(b.platform, "windows/") {
		z := zip.NewWriter(&out)
		for _, f := range files {
			var w io.Writer
			if w, err = z.Create(folder + "/" + f.name); err == nil {
				_, err = w.Write(f.content)
			}
			if err != nil {
				return "", nil, err
			}
		}
		err = z.Close()
		return folder + ".zip", out.Bytes(), err
	}
	g := gzip.NewWriter(&out)
	t := tar.NewWriter(g)
	for _, f := range files {
		mode := int64(0o644)
		if f.name == b.name {
			mode = 0o755
		}
		if err = t.WriteHeader(&tar.Header{Name: folder + "/" + f.name, Mode: mode, Size: int64(len(f.content)),
			Format: tar.FormatUSTAR}); err == nil {
			_, err = t.Write(f.content)
		}
		if err != nil {
			return "", nil, err
		}
	}
	err = errors.Join(t.Close(), g.Close())
	return folder + ".tar.gz", out.Bytes(), err
}

func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	return "file://" + path
}
