package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"allium/auth"
	"allium/internal/exchange"
)

// check returns an error if keys lack one of their parts.
func check(c *auth.AWSCredentials) error {
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return errors.New("there is no access key id or no secret access key")
	}
	return nil
}

const (
	// awsTimeout bounds a request for keys.
	awsTimeout = 10 * time.Second
	// awsMargin is how long before they expire keys are no longer used.
	awsMargin = 5 * time.Minute
)

// AWSKeys are where a client's keys come from. Safe for concurrent use: two connections may fetch
// keys at the same time, so that none waits for another one.
type AWSKeys struct {
	callback auth.AWSCallback // nil: the environment
	timeout  time.Duration
	local    *http.Client
	sts      *http.Client
	cache    *awsCache
}

type expiringKeys struct {
	auth.AWSCredentials
	expires time.Time
}

// awsSource is a service that hands out keys, and all that they depend on: two clients whose
// sources are equal get the same keys.
type awsSource struct {
	kind  string // as errors name it
	path  string // of the file with a token, or at the container's agent
	role  string
	title string // AWS_ROLE_SESSION_NAME
}

// environmentSource returns the service that the environment names ("Credential Fetching Order").
func environmentSource() awsSource {
	file, role := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), os.Getenv("AWS_ROLE_ARN")
	if file != "" && role != "" {
		return awsSource{kind: "web identity", path: file, role: role, title: os.Getenv("AWS_ROLE_SESSION_NAME")}
	}
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return awsSource{kind: "ECS container", path: path}
	}
	return awsSource{kind: "EC2 instance"}
}

// awsCache has the keys of each source, until shortly before they expire ("Caching Credentials").
// What a program's callback or the environment itself says is never in it.
type awsCache struct {
	mu   sync.Mutex
	keys map[awsSource]*expiringKeys
}

// processKeys are the keys that all clients of the process share, so that a program with many does
// not run into the services' limits.
var processKeys awsCache

func (c *awsCache) get(s awsSource) *expiringKeys {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.keys[s]; k != nil && time.Until(k.expires) > awsMargin {
		return k
	}
	delete(c.keys, s)
	return nil
}

// set keeps the keys of s; nil forgets them.
func (c *awsCache) set(s awsSource, k *expiringKeys) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k == nil {
		delete(c.keys, s)
		return
	}
	if c.keys == nil {
		c.keys = map[awsSource]*expiringKeys{}
	}
	c.keys[s] = k
}

// NewAWSKeys returns the keys that callback hands out within timeout, or those of the environment
// if it is nil.
func NewAWSKeys(callback auth.AWSCallback, timeout time.Duration) *AWSKeys {
	return &AWSKeys{callback: callback, timeout: timeout, local: MetadataClient, sts: stsClient, cache: &processKeys}
}

// stsClient may need a proxy, other than MetadataClient.
var stsClient = &http.Client{Transport: exchange.NewTransport(http.ProxyFromEnvironment)}

// Forget drops the keys of the environment's source from the process's cache, after an
// authentication that failed. The failure of a callback's keys says nothing about them.
func (k *AWSKeys) Forget() {
	if k.callback == nil {
		k.cache.set(environmentSource(), nil)
	}
}

// Get returns the keys of the first source that has any ("Credential Fetching Order"). Those that
// came over the network are kept for all clients until shortly before they expire, and win over
// keys that the environment has later on.
func (k *AWSKeys) Get(ctx context.Context) (auth.AWSCredentials, error) {
	if k.callback != nil {
		ctx, cancel := context.WithTimeout(ctx, k.timeout)
		defer cancel()
		c, err := k.callback(ctx)
		if err == nil {
			err = check(&c)
		}
		if err != nil {
			err = fmt.Errorf("callback: %w", err)
		}
		return c, err
	}
	source := environmentSource()
	if c := k.cache.get(source); c != nil {
		return c.AWSCredentials, nil
	}
	id, secret, token := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"),
		os.Getenv("AWS_SESSION_TOKEN")
	if id != "" || secret != "" || token != "" {
		c := auth.AWSCredentials{AccessKeyID: id, SecretAccessKey: auth.Secret(secret),
			SessionToken: auth.Secret(token)}
		if err := check(&c); err != nil {
			return c, fmt.Errorf("environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w", err)
		}
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, awsTimeout)
	defer cancel()
	fetch := k.fromInstance
	switch {
	case source.role != "":
		fetch = k.fromWebIdentity
	case source.path != "":
		fetch = k.fromContainer
	}
	c, err := fetch(ctx, source)
	if err == nil {
		err = check(&c.AWSCredentials)
	}
	if err != nil {
		return auth.AWSCredentials{}, fmt.Errorf("keys of the %s: %w", source.kind, err)
	}
	k.cache.set(source, c)
	return c.AWSCredentials, nil
}

// The addresses that keys are fetched from.
const (
	stsURL       = "https://sts.amazonaws.com/"
	containerURL = "http://169.254.170.2"
	instanceURL  = "http://169.254.169.254/latest/"
)

// awsReply has the keys as the services write them: the Security Token Service calls the token
// otherwise.
type awsReply struct {
	AccessKeyID     string          `json:"AccessKeyId"`
	SecretAccessKey string          `json:"SecretAccessKey"`
	Token           string          `json:"Token"`
	SessionToken    string          `json:"SessionToken"`
	Expiration      json.RawMessage `json:"Expiration"`
}

// keys takes over a reply. Keys without a time at which they expire are not kept for long.
func (r *awsReply) keys() (*expiringKeys, error) {
	c := &expiringKeys{AWSCredentials: auth.AWSCredentials{AccessKeyID: r.AccessKeyID,
		SecretAccessKey: auth.Secret(r.SecretAccessKey), SessionToken: auth.Secret(r.Token + r.SessionToken)}}
	var seconds float64
	switch {
	case len(r.Expiration) == 0:
	case json.Unmarshal(r.Expiration, &seconds) == nil: // since 1970
		c.expires = time.Unix(int64(seconds), 0)
	default:
		if json.Unmarshal(r.Expiration, &c.expires) != nil { // whose error shows what is there
			return nil, errors.New("reply: when the keys expire is neither a time of RFC 3339 nor a number of seconds")
		}
	}
	return c, nil
}

func parseKeys(body []byte) (*expiringKeys, error) {
	var r awsReply
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("reply: %w", exchange.Clean(err))
	}
	return r.keys()
}

// fromWebIdentity exchanges an OpenID Connect token for keys (AssumeRoleWithWebIdentity).
func (k *AWSKeys) fromWebIdentity(ctx context.Context, s awsSource) (*expiringKeys, error) {
	token, err := readToken(s.path)
	if err != nil {
		return nil, err
	}
	name := s.title
	if name == "" {
		name = "allium-" + strings.NewReplacer("+", "-", "/", "_").Replace(randomNonce())
	}
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleSessionName": {name},
		"RoleArn": {s.role}, "WebIdentityToken": {token}}
	body, err := Ask(ctx, k.sts, http.MethodPost, stsURL, strings.NewReader(form.Encode()),
		http.Header{"Accept": {"application/json"}, "Content-Type": {"application/x-www-form-urlencoded"}}, token)
	if err != nil {
		return nil, err
	}
	var r struct {
		Credentials awsReply
		Response    struct {
			Result struct{ Credentials awsReply } `json:"AssumeRoleWithWebIdentityResult"`
		} `json:"AssumeRoleWithWebIdentityResponse"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("reply: %w", exchange.Clean(err))
	}
	if r.Credentials.AccessKeyID == "" {
		r.Credentials = r.Response.Result.Credentials
	}
	return r.Credentials.keys()
}

// fromContainer asks the agent of a container.
func (k *AWSKeys) fromContainer(ctx context.Context, s awsSource) (*expiringKeys, error) {
	body, err := Ask(ctx, k.local, http.MethodGet, containerURL+"/"+strings.TrimPrefix(s.path, "/"), nil,
		http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, err
	}
	return parseKeys(body)
}

// fromInstance asks the metadata service of a virtual machine, which first wants a session (version
// 2 of the service).
func (k *AWSKeys) fromInstance(ctx context.Context, _ awsSource) (*expiringKeys, error) {
	token, err := Ask(ctx, k.local, http.MethodPut, instanceURL+"api/token", nil,
		http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"30"}})
	if err != nil {
		return nil, err
	}
	session := strings.TrimSpace(string(token))
	header := http.Header{"X-Aws-Ec2-Metadata-Token": {session}}
	const credentials = instanceURL + "meta-data/iam/security-credentials/"
	role, err := Ask(ctx, k.local, http.MethodGet, credentials, nil, header, session)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSpace(string(role))
	if name == "" {
		return nil, errors.New("the instance has no role")
	}
	body, err := Ask(ctx, k.local, http.MethodGet, credentials+url.PathEscape(name), nil, header, session)
	if err != nil {
		return nil, err
	}
	return parseKeys(body)
}

// Ask sends a request to a service that hands out tokens or keys, once and to nobody else: package
// exchange says what an answer may not do. One other than 200 is an error with what it says,
// without the secrets.
func Ask(ctx context.Context, client *http.Client, method, url string, body io.Reader, header http.Header,
	secrets ...string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	request.Header = header
	answer, err := exchange.Do(client.Transport, request, secrets...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request.URL.Host, err)
	}
	if answer.Status != http.StatusOK {
		return nil, answer.Refusal(request.URL.Host, secrets...)
	}
	return answer.Body, nil
}
