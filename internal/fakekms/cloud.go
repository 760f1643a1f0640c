package fakekms

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"allium/internal/sigv4"
)

// The tokens that the identity providers hand out.
const (
	AzureToken = "fake-azure-token"
	GCPToken   = "fake-gcp-token"
)

// hostOf returns the host that a request is for, without the port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}

// clouds serves the three clouds, by the host and the path of a request.
func (s *Server) clouds(w http.ResponseWriter, r *http.Request) {
	host := hostOf(r)
	s.saw(Request{Host: host, Path: r.URL.Path})
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	if answer != nil {
		if status, text := answer(r); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, text)
			return
		}
	}
	switch {
	case r.Method != http.MethodPost:
		http.NotFound(w, r)
	case r.Header.Get("X-Amz-Target") != "":
		s.aws(w, r, body)
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token"):
		s.azureLogin(w, r, body)
	case strings.HasPrefix(r.URL.Path, "/keys/"):
		s.azureVault(w, r, body)
	case r.URL.Path == "/token":
		s.gcpLogin(w, r, body)
	case strings.HasPrefix(r.URL.Path, "/v1/projects/"):
		s.gcpKeys(w, r, body)
	default:
		http.NotFound(w, r)
	}
}

func awsError(w http.ResponseWriter, kind, message string) {
	reply(w, http.StatusBadRequest, map[string]string{"__type": kind, "message": message})
}

func (s *Server) aws(w http.ResponseWriter, r *http.Request, body []byte) {
	if message, kind := s.checkSignature(r, body); kind != "" {
		awsError(w, kind, message)
		return
	}
	var in struct {
		KeyID                     string `json:"KeyId"`
		Plaintext, CiphertextBlob []byte
	}
	if err := json.Unmarshal(body, &in); err != nil {
		awsError(w, "SerializationException", "the body is not JSON")
		return
	}
	switch r.Header.Get("X-Amz-Target") {
	case "TrentService.Encrypt":
		reply(w, http.StatusOK, map[string]any{"KeyId": in.KeyID, "CiphertextBlob": s.wrap(in.Plaintext)})
	case "TrentService.Decrypt":
		material, ok := s.known(in.CiphertextBlob)
		if !ok {
			var err error
			if material, err = s.unwrap(in.CiphertextBlob); err != nil {
				awsError(w, "InvalidCiphertextException", "the ciphertext is invalid")
				return
			}
		}
		reply(w, http.StatusOK, map[string]any{"KeyId": "arn", "Plaintext": material})
	default:
		awsError(w, "UnknownOperationException", "")
	}
}

// checkSignature returns the error that Amazon's service answers to what is wrong with a request's
// signature.
func (s *Server) checkSignature(r *http.Request, body []byte) (message, kind string) {
	token := r.Header.Get("X-Amz-Security-Token")
	if token != "" && token != AWSSessionToken {
		return "The security token included in the request is invalid.", "UnrecognizedClientException"
	}
	authorization := r.Header.Get("Authorization")
	_, credential, _ := strings.Cut(authorization, "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	scope := strings.Split(credential, "/")
	if len(scope) != 5 || scope[0] != AWSAccessKeyID {
		return "The security token included in the request is invalid.", "UnrecognizedClientException"
	}
	region := scope[2]
	if host := hostOf(r); strings.HasPrefix(host, "kms.") && strings.HasSuffix(host, ".amazonaws.com") {
		if own := strings.TrimSuffix(strings.TrimPrefix(host, "kms."), ".amazonaws.com"); own != region {
			return fmt.Sprintf("Credential should be scoped to a valid region, not '%s'.", region),
				"InvalidSignatureException"
		}
	}
	_, names, _ := strings.Cut(authorization, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	signed := sigv4.Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Body: string(body),
		Time: r.Header.Get("X-Amz-Date"), Region: region, Service: "kms"}
	for _, name := range strings.Split(names, ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		signed.Headers = append(signed.Headers, sigv4.Header{Name: name, Value: value})
	}
	if sigv4.Authorization(signed, AWSAccessKeyID, AWSSecretAccessKey) != authorization {
		return "The request signature we calculated does not match the signature you provided.",
			"InvalidSignatureException"
	}
	return "", ""
}

func (s *Server) azureLogin(w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if r.ParseForm() != nil || r.URL.Path != "/"+AzureTenantID+"/oauth2/v2.0/token" ||
		r.Form.Get("client_id") != AzureClientID ||
		r.Form.Get("client_secret") != AzureClientSecret || r.Form.Get("grant_type") != "client_credentials" ||
		!strings.HasPrefix(r.Form.Get("scope"), "https://") || !strings.HasSuffix(r.Form.Get("scope"), "/.default") {
		reply(w, http.StatusUnauthorized,
			map[string]string{"error": "invalid_client", "error_description": "the client is not known"})
		return
	}
	reply(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": AzureToken})
}

func (s *Server) azureVault(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get("Authorization") != "Bearer "+AzureToken {
		reply(w, http.StatusUnauthorized, map[string]any{"error": map[string]string{"code": "Unauthorized",
			"message": "Error validating token: IDX10223"}})
		return
	}
	var in struct {
		Algorithm string `json:"alg"`
		Value     string `json:"value"`
	}
	value := []byte(nil)
	err := json.Unmarshal(body, &in)
	if err == nil {
		value, err = base64.RawURLEncoding.DecodeString(in.Value)
	}
	if err != nil || in.Algorithm != "RSA-OAEP-256" || r.URL.Query().Get("api-version") != "7.1" {
		reply(w, http.StatusBadRequest, map[string]any{"error": map[string]string{"code": "BadParameter",
			"message": "malformed request"}})
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/wrapkey"):
		value = s.wrap(value)
	case strings.HasSuffix(r.URL.Path, "/unwrapkey"):
		if value, err = s.unwrap(value); err != nil {
			reply(w, http.StatusBadRequest, map[string]any{"error": map[string]string{"code": "BadParameter",
				"message": "the ciphertext is invalid"}})
			return
		}
	default:
		http.NotFound(w, r)
		return
	}
	reply(w, http.StatusOK, map[string]string{"kid": "fake", "value": base64.RawURLEncoding.EncodeToString(value)})
}

func (s *Server) gcpLogin(w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if r.ParseForm() != nil || r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" ||
		!s.validAssertion(r.Form.Get("assertion")) {
		reply(w, http.StatusBadRequest,
			map[string]string{"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
		return
	}
	reply(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": GCPToken})
}

// validAssertion checks the signature and the claims of a JSON web token.
func (s *Server) validAssertion(assertion string) bool {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&s.gcpKey.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return false
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Iss, Aud, Scope string
		Iat, Exp        int64
	}
	if err != nil || json.Unmarshal(data, &claims) != nil {
		return false
	}
	return claims.Iss == GCPEmail && strings.HasSuffix(claims.Aud, "/token") &&
		claims.Scope == "https://www.googleapis.com/auth/cloudkms" && claims.Exp > claims.Iat
}

func (s *Server) gcpKeys(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get("Authorization") != "Bearer "+GCPToken {
		reply(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"code": 401,
			"message": "Request had invalid authentication credentials.", "status": "UNAUTHENTICATED"}})
		return
	}
	var in struct{ Plaintext, Ciphertext []byte }
	if err := json.Unmarshal(body, &in); err != nil {
		reply(w, http.StatusBadRequest,
			map[string]any{"error": map[string]any{"code": 400, "message": "malformed request"}})
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, ":encrypt"):
		reply(w, http.StatusOK, map[string]any{"name": "fake", "ciphertext": s.wrap(in.Plaintext)})
	case strings.HasSuffix(r.URL.Path, ":decrypt"):
		material, err := s.unwrap(in.Ciphertext)
		if err != nil {
			reply(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"code": 400,
				"message": "Decryption failed: the ciphertext is invalid.", "status": "INVALID_ARGUMENT"}})
			return
		}
		reply(w, http.StatusOK, map[string]any{"plaintext": material})
	default:
		http.NotFound(w, r)
	}
}

// nowhere is an HTTPS server that is not a key service.
func nowhere(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		io.WriteString(w, "this is no key service")
		return
	}
	http.NotFound(w, r)
}

// failing is the key service of the specification's tests of retries. It accepts every credential
// and fails as often as FailHTTP and FailConnections say.
func (s *Server) failing(w http.ResponseWriter, r *http.Request) {
	s.saw(Request{Host: hostOf(r), Path: r.URL.Path})
	if s.take(&s.failHTTP) {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	var in struct {
		Plaintext, CiphertextBlob, Ciphertext []byte
		Value                                 string
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	json.Unmarshal(body, &in)
	base := base64.RawURLEncoding
	value, _ := base.DecodeString(in.Value)
	open := func(wrapped []byte) []byte {
		material, _ := s.unwrap(wrapped)
		return material
	}
	switch path, target := r.URL.Path, r.Header.Get("X-Amz-Target"); {
	case strings.HasSuffix(target, "Encrypt"):
		reply(w, http.StatusOK, map[string]any{"CiphertextBlob": s.wrap(in.Plaintext)})
	case strings.HasSuffix(target, "Decrypt"):
		reply(w, http.StatusOK, map[string]any{"Plaintext": open(in.CiphertextBlob)})
	case strings.HasSuffix(path, "/wrapkey"):
		reply(w, http.StatusOK, map[string]any{"value": base.EncodeToString(s.wrap(value))})
	case strings.HasSuffix(path, "/unwrapkey"):
		reply(w, http.StatusOK, map[string]any{"value": base.EncodeToString(open(value))})
	case strings.HasSuffix(path, ":encrypt"):
		reply(w, http.StatusOK, map[string]any{"ciphertext": s.wrap(in.Plaintext)})
	case strings.HasSuffix(path, ":decrypt"):
		reply(w, http.StatusOK, map[string]any{"plaintext": open(in.Ciphertext)})
	case strings.HasSuffix(path, "/token"):
		reply(w, http.StatusOK, map[string]any{"access_token": "any", "expires_in": 3599})
	default:
		http.NotFound(w, r)
	}
}
