package campaign

import (
	"context"
	"errors"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/fakekms"
)

// rotation is the certificates of a history in real time with TLS: clients have theirs in files,
// which are replaced while they work, with those of the servers and of the key services.
type rotation struct {
	w       *world
	dir     string
	kms     *fakekms.Server
	servers *side
	keys    *side
	vault   *client // of the data keys; nobody closes it before the end
	crypt   *encryption.Client
	master  map[string]kms.MasterKey // by the name of the key service

	mu      sync.Mutex
	windows []*window
	damaged int // how often a file was left broken
}

// side is what rotates at once: the servers of the deployment, or the key services.
type side struct {
	name  string
	files allium.TLSFiles
	use   func(shows *fakekms.Authority, clients ...*fakekms.Authority) error

	now    *fakekms.Authority // whose certificates are in the files and shown
	busy   bool               // it is in the middle of a rotation
	broken int                // files that cannot be used as they are
}

// window is a time in which certificates are refused, because nothing fits.
type window struct {
	from, to time.Time // to is zero while it lasts
	lag      time.Duration
}

// newRotation makes the first certificates and starts the key services.
func newRotation(w *world) (*rotation, error) {
	r := &rotation{w: w, master: map[string]kms.MasterKey{"aws": kms.AWSKey{Region: "us-east-1",
		Key: "arn:aws:kms:us-east-1:579766882180:key/any"}, "kmip": nil}}
	var err error
	if r.dir, err = os.MkdirTemp("", "campaign"); err != nil {
		return r, err
	}
	if r.kms, err = fakekms.Start(); err != nil {
		return r, err
	}
	r.servers = &side{name: "servers", use: func(shows *fakekms.Authority, clients ...*fakekms.Authority) error {
		cert, err := shows.Server("127.0.0.1") // which is localhost
		if err != nil {
			return err
		}
		return w.d.UseCertificate(*cert, fakekms.Pool(clients...))
	}}
	r.keys = &side{name: "key services", use: func(shows *fakekms.Authority, clients ...*fakekms.Authority) error {
		r.kms.Use(shows, clients...)
		return nil
	}}
	for _, s := range r.sides(3) {
		folder, err := os.MkdirTemp(r.dir, "side")
		if err != nil {
			return r, err
		}
		s.files = allium.TLSFiles{CAFile: filepath.Join(folder, "ca.pem"),
			CertificateKeyFile: filepath.Join(folder, "client.pem")}
		if s.now, err = fakekms.NewAuthority(); err != nil {
			return r, err
		}
		ca, own := s.now.Files()
		if err := errors.Join(write(s.files.CAFile, ca), write(s.files.CertificateKeyFile, own),
			s.use(s.now, s.now)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// begin opens the client of the data keys, and what makes them.
func (r *rotation) begin() error {
	r.vault = &client{w: r.w, id: len(r.w.clients), plan: ClientPlan{MaxPool: 5, Heartbeat: 500 * time.Millisecond}}
	if err := r.vault.open(); err != nil {
		return err
	}
	var err error
	r.crypt, err = encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{
		KeyVaultClient: r.vault.get(), KeyVault: dbName + ".keys",
		KMS: kms.Providers{
			"aws":  kms.AWS{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey},
			"kmip": kms.KMIP{Endpoint: "localhost:5698"},
		},
		TLSFiles:      map[string]allium.TLSFiles{"aws": {CAFile: r.keys.files.CAFile}, "kmip": r.keys.files},
		KMSConnect:    func(ctx context.Context, address string) (net.Conn, error) { return r.kms.Dial(ctx, address) },
		KeyExpiration: new(time.Millisecond), // so that each use asks the key service
	}})
	return err
}

// end closes what begin has opened.
func (r *rotation) end() {
	if r == nil {
		return
	}
	if r.crypt != nil {
		r.crypt.Close()
	}
	if r.vault != nil && r.vault.usage != nil {
		r.vault.close()
		r.vault.usage.check()
	}
	if r.kms != nil {
		left := 0
		for range 250 {
			if left = r.kms.Connections(); left == 0 {
				break
			}
			time.Sleep(20 * time.Millisecond) // they are still at it
		}
		if left != 0 {
			r.w.violation("the key services have %d connections after all clients have been closed", left)
		}
		r.kms.Close()
	}
	os.RemoveAll(r.dir)
}

// sides returns what a step rotates: 1 the servers, 2 the key services, 3 both.
func (r *rotation) sides(which int) []*side {
	return [][]*side{{r.servers}, {r.keys}, {r.servers, r.keys}}[(which-1)%3]
}

// write writes a file as most programs do, in place.
func write(name string, data []byte) error { return os.WriteFile(name, data, 0o600) }

// broken reports whether a file of the servers' side cannot be used at this moment, so that no
// client can be opened.
func (r *rotation) broken() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers.broken > 0
}

// damages returns how often a file was left broken.
func (r *rotation) damages() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.damaged
}

// damage leaves a file as it is in the middle of its replacement, in a way that n chooses: half
// written, empty, gone, or a folder.
func (r *rotation) damage(s *side, name string, data []byte, n int) error {
	r.mu.Lock()
	s.broken++
	r.damaged++
	r.mu.Unlock()
	switch n % 4 {
	case 0:
		return write(name, data[:len(data)/2])
	case 1:
		return write(name, nil)
	case 2:
		return os.Remove(name)
	}
	return errors.Join(os.Remove(name), os.Mkdir(name, 0o700))
}

// mend ends what damage has begun.
func (r *rotation) mend(s *side, name string, data []byte) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	err := write(name, data)
	r.mu.Lock()
	s.broken--
	r.mu.Unlock()
	return err
}

// apart is how long a client may go on with what it has read of the files: a connection that takes
// longer to be made is given up.
const apart = connectTimeout + 100*time.Millisecond

// connectTimeout is that of clients in real time.
const connectTimeout = time.Second

// turns has the sides that a step rotates, each with a new authority, without those that an earlier
// step is still at.
func (a *adversary) turns(s Step) iter.Seq2[*side, *fakekms.Authority] {
	return func(yield func(*side, *fakekms.Authority) bool) {
		for _, of := range a.w.rotation.sides(s.N) {
			if of.busy {
				continue
			}
			next, err := fakekms.NewAuthority()
			if err != nil {
				a.must(err)
				return
			}
			if of.busy = true; !yield(of, next) {
				return
			}
		}
	}
}

// renew rotates certificates in the usual order, at which nobody may notice anything: clients trust
// the new authority before the servers show it, and show the new certificate before the servers
// want it. Every file is broken for a while on its way.
func (a *adversary) renew(s Step) {
	r := a.w.rotation
	for of, next := range a.turns(s) {
		old := of.now
		oldCA, _ := old.Files()
		ca, own := next.Files()
		both := slices.Concat(oldCA, ca)
		a.stages([]stage{
			{0, func() error { return r.damage(of, of.files.CAFile, both, s.Node) }},
			{s.For, func() error { return errors.Join(r.mend(of, of.files.CAFile, both), of.use(old, old, next)) }},
			{apart, func() error {
				return errors.Join(of.use(next, old, next), r.damage(of, of.files.CertificateKeyFile, own, s.Node+1))
			}},
			{s.For, func() error { return r.mend(of, of.files.CertificateKeyFile, own) }},
			{apart, func() error {
				return errors.Join(of.use(next, next), r.damage(of, of.files.CAFile, ca, s.Node+2))
			}},
			{s.For, func() error {
				err := r.mend(of, of.files.CAFile, ca)
				a.rotated(of, next)
				return err
			}},
		})
	}
}

// cutOff replaces the servers' certificates, and what they want of clients, without a word: new
// connections fail until the files follow.
func (a *adversary) cutOff(s Step) {
	r := a.w.rotation
	for of, next := range a.turns(s) {
		ca, own := next.Files()
		shut := r.shut()
		a.must(of.use(next, next))
		a.stages([]stage{
			{s.For, func() error {
				err := errors.Join(write(of.files.CAFile, ca), write(of.files.CertificateKeyFile, own))
				r.reopen(shut)
				a.rotated(of, next)
				return err
			}},
		})
	}
}

// rotated notes that a rotation is complete.
func (a *adversary) rotated(of *side, to *fakekms.Authority) {
	of.now, of.busy = to, false
	a.w.mu.Lock()
	a.w.stats.Rotated[of.name]++
	a.w.mu.Unlock()
	a.w.log("adversary: the certificates of the %s are rotated", of.name)
}

// spoil lets the servers show a certificate that nobody accepts for a while.
func (a *adversary) spoil(s Step) {
	r := a.w.rotation
	if r.servers.busy {
		return
	}
	r.servers.busy = true
	shut := r.shut()
	a.must(a.w.d.ReplaceCertificate(s.certificate()))
	a.stages([]stage{{s.For, func() error {
		err := r.servers.use(r.servers.now, r.servers.now)
		r.reopen(shut)
		r.servers.busy = false
		return err
	}}})
}

// stage is a part of a step: what is done a while after the one before.
type stage struct {
	after time.Duration
	do    func() error
}

// stages does one after the other. Before each it closes the connections of all servers, so that
// new ones are made with what there is. A pause is longer by what the machine had no processor for
// this process.
func (a *adversary) stages(all []stage) {
	if len(all) == 0 {
		return
	}
	watch := a.w.stopwatch()
	var next func()
	next = func() {
		if waited := watch.waited(); waited > apart/10 {
			watch = a.w.stopwatch()
			a.pending = append(a.pending, undo{time.Now().Add(waited), next})
			return
		}
		for _, n := range a.w.d.Nodes() {
			n.CloseConnections()
		}
		a.must(all[0].do())
		a.stages(all[1:])
	}
	a.pending = append(a.pending, undo{time.Now().Add(all[0].after), next})
}

// shut begins a window in which certificates are refused.
func (r *rotation) shut() *window {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &window{from: time.Now()}
	r.windows = append(r.windows, w)
	return w
}

// reopen ends a window.
func (r *rotation) reopen(w *window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.to = time.Now()
	w.lag = r.w.lag.upTo(w.to)
}

// afterwards is how long after a window an error may tell of it: until the monitors have looked at
// every server once more.
const afterwards = connectTimeout + 2*time.Second

// excuses reports whether a call from start to end may have met a window.
func (r *rotation) excuses(start, end time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waited := r.w.lag.upTo(end)
	return slices.ContainsFunc(r.windows, func(w *window) bool {
		return !w.from.After(end) && (w.to.IsZero() || start.Before(w.to.Add(afterwards+waited-w.lag)))
	})
}

// judge holds an error against the promise that certificates are replaced without anybody's notice.
func (r *rotation) judge(what string, start time.Time, err error) {
	if r == nil || err == nil || !certificateRefused(err) {
		return
	}
	if r.excuses(start, time.Now()) {
		r.w.mu.Lock()
		r.w.stats.Refused++
		r.w.mu.Unlock()
		return
	}
	r.w.violation("%s: a certificate is refused while all fit: %v", what, err)
}

// certificateRefused reports whether a certificate was refused, by whichever side. Errors of
// servers that could not be selected have their causes in their text alone.
func certificateRefused(err error) bool {
	text := err.Error()
	_, alert, _ := strings.Cut(text, "remote error: tls: ")
	return strings.Contains(alert, "certificate") || strings.Contains(text, "failed to verify certificate")
}

// keys lets key services wrap and unwrap.
func (a *actor) keys() {
	name, value := pick(a.r, []string{"aws", "kmip"}), a.r.Int64()
	_ = a.do("data key", func(ctx context.Context) error { return a.rotation.sealAndOpen(ctx, name, value) })
}

// sealAndOpen makes a data key with a key service, and has it unwrapped for a value, which comes
// back as it was.
func (r *rotation) sealAndOpen(ctx context.Context, name string, value int64) error {
	id, err := r.crypt.CreateDataKey(ctx, name, encryption.DataKeyOptions{MasterKey: r.master[name]})
	if err != nil {
		return err
	}
	sealed, err := r.crypt.Encrypt(ctx, value, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
	if err != nil {
		return err
	}
	plain, err := r.crypt.Decrypt(ctx, sealed)
	if err != nil {
		return err
	}
	if got, ok := plain.AsInt64(); !ok || got != value {
		r.w.violation("data key: %d comes back as %v", value, plain)
	}
	return nil
}

// reconnect is called when the faults are over: what clients do then they do over new connections,
// with the certificates of now.
func (w *world) reconnect() {
	if w.rotation == nil {
		return
	}
	for _, n := range w.d.Nodes() {
		n.CloseConnections()
	}
}

// checkRotated sees, when all is quiet, that data keys are made and found after all rotations.
func (w *world) checkRotated(ctx context.Context) {
	if w.rotation == nil {
		return
	}
	if err := w.works(ctx, w.rotation.vault.get()); err != nil {
		w.violation("the key vault's client when all is quiet: %v", err)
	}
	for name := range w.rotation.master {
		if err := w.rotation.sealAndOpen(ctx, name, 1); err != nil {
			w.violation("a data key of %s when all is quiet: %v", name, err)
		}
	}
}
