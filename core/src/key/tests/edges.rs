//! Edge cases of keys and signatures, and the results of two libraries. They
//! were computed with plain affine arithmetic, independent of the libraries;
//! some keys were chosen to fit their signature. The message is `edge` and a
//! number, if there is one.

use super::*;

/// What the portable library says: no key, no, yes.
fn theirs(key: &[u8], message: &[u8], signature: &[u8]) -> &'static str {
    use p256::ecdsa::signature::Verifier as _;
    let holds = match key.len() {
        32 => {
            let Ok(key) = ed25519_dalek::VerifyingKey::from_bytes(key.try_into().unwrap()) else {
                return "no key";
            };
            ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|s| key.verify_strict(message, &s).is_ok())
        }
        _ => {
            let point = [&[4], key].concat();
            let Ok(key) = p256::ecdsa::VerifyingKey::from_sec1_bytes(&point) else {
                return "no key";
            };
            p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|s| key.verify(message, &s).is_ok())
        }
    };
    if holds { "yes" } else { "no" }
}

/// What we say.
fn ours(key: &[u8], message: &[u8], signature: &[u8]) -> &'static str {
    let (key, algorithm) = match key.len() {
        32 => (PublicKey::from_ed25519(key), Algorithm::EdDsa),
        _ => {
            let (x, y) = key.split_at(key.len() / 2);
            let material = Material::Ec { curve: Curve::P256, x: x.to_vec(), y: y.to_vec() };
            (PublicKey::new(material), Algorithm::Es256)
        }
    };
    let Ok(key) = key else { return "no key" };
    match key.verify(algorithm, message, signature) {
        Ok(()) => "yes",
        Err(_) => "no",
    }
}

const N: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
const KEY: &str = "c5301c672a1112ffd7858c29d4148c597133bee640f429cbe0b31b7da5fa4f95\
    7062fe189c9646b3d21eb151372da676115de00d79271fa922ea61ee74ebd39c";
const R: &str = "03b163f70c355463a1e7befbe3cce8bfc49d4b8e45da209515ebe300472c59f9";
const S: &str = "8b125216e900937bf226a291a36e2a95bbdf037b809825126b619c0ea3c2df0b";
const ZERO: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const FULL: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
/// The key for which r = 5 and s = 1 verify.
const KEY_5_1: &str = "e91309c105797fdba435aa1395c37b9e6025b9d81f1146a745ef20e461ba88d1\
    7944cee608fab7072b38739657aa74cca0647eb067483adeb9e2ae042a6ab4da";
/// The key for which a point verifies whose x is n + 3; then r is 3.
const KEY_BEYOND: &str = "b422954c2f7388f248740be37971bbe07d4060d7a9431957ffd2f362003d566c\
    be046411d80aa889a636680a892a78de393fa57796d49c3b969f464f2ae63550";

fn number(small: u8) -> String {
    format!("{small:064x}")
}

/// The order of the group, and a little more.
fn n_and(more: u8) -> String {
    format!("{}{:02x}", &N[..62], 0x51 + more)
}

/// Name, key, signature, and the verdict both libraries give.
fn es256_cases() -> Vec<(&'static str, String, String, &'static str)> {
    let case = |name, key: &str, r: &str, s: &str, verdict| {
        (name, key.to_owned(), format!("{r}{s}"), verdict)
    };
    let low = "74edade816ff6c850dd95d6e5c91d56a0107f732267f797288582eb458a04646";
    let n_less = format!("{}50", &N[..62]);
    let (x, y) = KEY.split_at(64);
    let negative = format!("{x}8f9d01e66369b94d2de14eaec8d25989eea21ff386d8e056dd159e118b142c63");
    let key_n_less = "9adc8401dfd07572359152894e4072f9900aa7d2cc27d2ecf4e969eac1436edc\
        d2a02694d9cd00f4463fbf21953ae4f07f56cea96af33b82f1040fae5088fb84";
    let key_infinity = "c6696411031fd39948326c01631fb3595be2cb7ba426befd74d8c52a964629e5\
        8e7d1cf9f33f979a82bf60bae2f96088244660781a8404d5e3d1ab377f58b118";
    let key_double = "3521ab00a968786d08409e338b5ba6b218b5e939ff5a9184613b91fb42d7f823\
        5295129522e91c95047d88a0686f1b71f9ab6289d7a02d279677eb3b35658343";
    let double = "6accc8eee0551fcaf8e8a94514bcf313c04f9996f0bb8841c62dec16631832e9";
    let double_s = "c57390542b5905d191b7472976ae8ad257c61aa058181f64fcbb36dc27f6307d";
    let y_of_zero = "66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4";
    let p = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
    vec![
        case("as signed", KEY, R, S, "yes"),
        // RFC 9053 asks for neither of the two; half of all signers write the
        // larger. So a signature has a second form, without any key.
        case("s as n - s", KEY, R, low, "yes"),
        case("the negative key", &negative, R, S, "no"),
        case("r and s zero", KEY, ZERO, ZERO, "no"),
        case("r zero", KEY, ZERO, S, "no"),
        case("s zero", KEY, R, ZERO, "no"),
        case("r is n", KEY, N, S, "no"),
        case("s is n", KEY, R, N, "no"),
        case("r is p", KEY, p, S, "no"),
        case("s is p", KEY, R, p, "no"),
        case("r and s one", KEY, &number(1), &number(1), "no"),
        case("r and s n - 1", KEY, &n_less, &n_less, "no"),
        case("r and s all ones", KEY, FULL, FULL, "no"),
        case("r 5 and s 1", KEY_5_1, &number(5), &number(1), "yes"),
        case("r 5 as n + 5", KEY_5_1, &n_and(5), &number(1), "no"),
        case("s 1 as n + 1", KEY_5_1, &number(5), &n_and(1), "no"),
        case("s n - 1", key_n_less, &number(5), &n_less, "yes"),
        case("x beyond n", KEY_BEYOND, &number(3), &number(7), "yes"),
        case("x beyond n, unreduced", KEY_BEYOND, &n_and(3), &number(7), "no"),
        case("the sum is infinity", key_infinity, R, S, "no"),
        case("the sum is a doubling", key_double, double, double_s, "yes"),
        case("without the last byte", KEY, R, &S[..62], "no"),
        case("without the first byte", KEY, &R[2..], S, "no"),
        case("a zero in front", KEY, &format!("00{R}"), S, "no"),
        case("a zero behind", KEY, R, &format!("{S}00"), "no"),
        case("each with a zero in front", KEY, &format!("00{R}"), &format!("00{S}"), "no"),
        case("in DER", KEY, &format!("30450220{R}"), &format!("022100{S}"), "no"),
        case("nothing", KEY, "", "", "no"),
        case("off the curve", &format!("{x}{}9d", &y[..62]), R, S, "no key"),
        case("the point of two zeros", &format!("{ZERO}{ZERO}"), R, S, "no key"),
        case("x zero", &format!("{ZERO}{y_of_zero}"), R, S, "no"),
        case("x zero as p", &format!("{p}{y_of_zero}"), R, S, "no key"),
        case("x of 31 bytes", &format!("{}{y}", &x[2..]), R, S, "no key"),
        case("y of 33 bytes", &format!("{x}00{y}"), R, S, "no key"),
    ]
}

#[test]
fn es256_edge_cases() {
    for (name, key, signature, verdict) in es256_cases() {
        let [key, signature] = [key, signature].map(|hex| text::from_hex(&hex).unwrap());
        assert_eq!(ours(&key, b"edge", &signature), verdict, "{name}");
        assert_eq!(theirs(&key, b"edge", &signature), verdict, "{name}: the portable library");
    }
}

const ED: &str = "7f5e2e44fda79949be2ef15d7d0752e6941b376accfbe59c9ccc2d2b95bc53c6";
const ED_R: &str = "b31b20f50426242514d81b383548bd90de72fd0b8cf2382a88f9f52ce5076b23";
const ED_S: &str = "f450a00905ea1c2c63f0b0194274285329a451939266640a50aa50a60f19e507";
/// `ED` plus a point of order 8.
const MIXED: &str = "5aed32f2d524ff328568f01c01ba5aaa2590d18adf6353250411922303935435";
const ONE: &str = "0100000000000000000000000000000000000000000000000000000000000000";

/// Name, key, message, signature, our verdict, theirs.
type Ed = (&'static str, &'static str, &'static str, [&'static str; 2], [&'static str; 2]);

/// Where the two differ, the reason is above the row. The portable library
/// runs in strict mode.
const ED25519_CASES: &[Ed] = &[
    ("as signed", ED, "edge", [ED_R, ED_S], ["yes", "yes"]),
    ("another message", ED, "edge 0", [ED_R, ED_S], ["no", "no"]),
    (
        "S plus the order",
        ED,
        "edge",
        [ED_R, "e12496661f4d2f84398da8bc206e076829a451939266640a50aa50a60f19e517"],
        ["no", "no"],
    ),
    ("S zero", ED, "edge", [ED_R, ZERO], ["no", "no"]),
    (
        "S is the order",
        ED,
        "edge",
        [ED_R, "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"],
        ["no", "no"],
    ),
    ("S all ones", ED, "edge", [ED_R, FULL], ["no", "no"]),
    ("without the last byte", ED, "edge", [ED_R, "00"], ["no", "no"]),
    (
        "a zero behind",
        ED,
        "edge",
        [ED_R, "f450a00905ea1c2c63f0b0194274285329a451939266640a50aa50a60f19e50700"],
        ["no", "no"],
    ),
    ("nothing", ED, "edge", ["", ""], ["no", "no"]),
    // The fast library looks for the point when it verifies, not before; so it
    // is a key under which nothing holds.
    (
        "no point has this y",
        "0200000000000000000000000000000000000000000000000000000000000000",
        "edge",
        [ED_R, ED_S],
        ["no", "no key"],
    ),
    // The equation holds only when multiplied by eight. RFC 8032 allows both
    // readings; both libraries take the stricter one.
    (
        "R with a part of order 8",
        ED,
        "edge",
        [
            "186ed2bdbd1a36f6437c5168b0221914018ea4f32a1c3fcd1c1794d64fbd596e",
            "cca449c26d7e0eb3787ada31a6adcfc2f32ce15a45451e5525a9487c2dafa300",
        ],
        ["no", "no"],
    ),
    (
        "a key with a part of order 8",
        MIXED,
        "edge 0",
        [ED_R, "64dc3a68a545aafb6020803563e13b5bfa18272b235af953aeff04c3c4ec1b01"],
        ["no", "no"],
    ),
    // The same where the parts cancel: the equation holds as it stands.
    (
        "a key with a part of order 8 that does not matter",
        MIXED,
        "edge 19",
        [ED_R, "7142005ff884e37ede9321d81c4904e19eabd440b8a5ee795aaaf96a700a6a02"],
        ["yes", "yes"],
    ),
    (
        "key and R with parts that cancel",
        MIXED,
        "edge 0",
        [
            "4c261951fba9f4ba7ece40431f212269f58becc2473c54cecda0e8f1e6f9d253",
            "28ea59ad2daeddf42ace8da98201d0a9ac6c967839d3dc431c79b5316a83a607",
        ],
        ["yes", "yes"],
    ),
    // Whoever has the key may choose such an R; it shows nothing about it. We
    // follow RFC 8032, which has no objection.
    (
        "R is the identity",
        ED,
        "edge",
        [ONE, "96dbc0085ed8d085ea00b318fa950d003d184fe2abc007a801b139b3d18ac003"],
        ["yes", "no"],
    ),
    (
        "R is the identity, with y as p + 1",
        ED,
        "edge",
        [
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "bb1f1c5051364d1a29806ef0594c3848b8c29f1a92634ab533d84b8145215406",
        ],
        ["no", "no"],
    ),
    (
        "R is the identity, with minus zero",
        ED,
        "edge",
        [
            "0100000000000000000000000000000000000000000000000000000000000080",
            "f70867d8dcfbb56d7018110aec532acd176a07d2fccee407a2f95bf4e5197708",
        ],
        ["no", "no"],
    ),
    // Keys of small order: anyone can sign, here with S zero. The fast library
    // takes all of them; we refuse the key, the portable one the signature.
    ("the identity as key", ONE, "edge 0", [ONE, ZERO], ["no key", "no"]),
    (
        "a key of order 2",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edge 0",
        [ONE, ZERO],
        ["no key", "no"],
    ),
    (
        "the identity as key, with minus zero",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "edge 0",
        [ONE, ZERO],
        ["no key", "no"],
    ),
    (
        "a key of order 2, with minus zero",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edge 0",
        [ONE, ZERO],
        ["no key", "no"],
    ),
    ("a key of order 4", ZERO, "edge 0", [ONE, ZERO], ["no key", "no"]),
    (
        "the other key of order 4",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "edge 2",
        ["ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", ZERO],
        ["no key", "no"],
    ),
    (
        "a key of order 8",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "edge 0",
        [ONE, ZERO],
        ["no key", "no"],
    ),
    (
        "its negative",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "edge 0",
        [ONE, ZERO],
        ["no key", "no"],
    ),
    (
        "another key of order 8",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "edge 0",
        ["0000000000000000000000000000000000000000000000000000000000000080", ZERO],
        ["no key", "no"],
    ),
    (
        "the negative of that",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "edge 0",
        ["c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", ZERO],
        ["no key", "no"],
    ),
    // Second spellings of a key: RFC 8032, 5.1.3 refuses y from p on, the
    // portable library reduces it.
    (
        "y zero as p",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edge 0",
        [ONE, ZERO],
        ["no key", "no"],
    ),
    (
        "y 3 as p + 3",
        "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edge",
        [ED_R, ED_S],
        ["no key", "no"],
    ),
    (
        "y 18 as p + 18",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edge",
        [ED_R, ED_S],
        ["no key", "no"],
    ),
];

#[test]
fn ed25519_edge_cases() {
    for (name, key, message, signature, verdicts) in ED25519_CASES {
        let key = text::from_hex(key).unwrap();
        let signature = text::from_hex(&signature.concat()).unwrap();
        let found = [ours, theirs].map(|judge| judge(&key, message.as_bytes(), &signature));
        assert_eq!(found, *verdicts, "{name}");
    }
}

/// What a signer makes of no message at all; and one byte is not none.
#[test]
fn empty_message() {
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let key = SigningKey::generate(algorithm).unwrap();
        let signature = key.sign(b"").unwrap();
        let key = match key.public().material() {
            Material::Ed25519(bytes) => bytes.to_vec(),
            Material::Ec { x, y, .. } => [x.as_slice(), y.as_slice()].concat(),
            other => panic!("{other:?} was not asked for"),
        };
        for judge in [ours, theirs] {
            assert_eq!(judge(&key, b"", &signature), "yes", "{algorithm:?}");
            assert_eq!(judge(&key, b"\0", &signature), "no", "{algorithm:?}");
        }
    }
}

/// A SubjectPublicKeyInfo with this curve, unused bits and point.
fn spki(curve: &str, unused: u8, point: &str) -> Vec<u8> {
    let [curve, point] = [curve, point].map(|hex| text::from_hex(hex).unwrap());
    let element =
        |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap()], content].concat();
    let ec_public_key = text::from_hex("06072a8648ce3d0201").unwrap();
    let algorithm = element(0x30, &[ec_public_key, curve].concat());
    let bits = element(3, &[&[unused], point.as_slice()].concat());
    element(0x30, &[algorithm, bits].concat())
}

/// What a key file can say besides a point.
#[test]
fn p256_encodings() {
    const P256: &str = "06082a8648ce3d030107";
    let [x, y] = [&KEY[..64], &KEY[64..]];
    let whole = format!("04{KEY}");
    let compressed = ["02", "03"].map(|sign| format!("{sign}{x}"));
    let hybrid = ["06", "07"].map(|sign| format!("{sign}{x}{y}"));
    let cases = [
        ("as it should be", P256, 0, whole.as_str(), "ok"),
        ("the point at infinity", P256, 0, "00", "key-compressed-point"),
        ("no point", P256, 0, "", "key-compressed-point"),
        ("compressed, even", P256, 0, &compressed[0], "key-compressed-point"),
        ("compressed, odd", P256, 0, &compressed[1], "key-compressed-point"),
        ("hybrid, even", P256, 0, &hybrid[0], "key-compressed-point"),
        ("hybrid, odd", P256, 0, &hybrid[1], "key-compressed-point"),
        ("half a point", P256, 0, &whole[..66], "key-invalid-material"),
        ("a point and more", P256, 0, &format!("{whole}00"), "key-invalid-material"),
        ("bits left over", P256, 4, &whole, "key-not-pem"),
        ("on secp256k1, it says", "06052b8104000a", 0, &whole, "key-unsupported-kind"),
        ("on P-384, it says", "06052b81040022", 0, &whole, "key-invalid-material"),
        ("on no curve", "", 0, &whole, "key-unsupported-kind"),
        ("on a curve of its own", "3000", 0, &whole, "key-unsupported-kind"),
    ];
    for (name, curve, unused, point, expected) in cases {
        let code = PublicKey::from_spki(&spki(curve, unused, point)).map_or_else(
            |error| error.code(),
            |key| if key.material().clone() == p256() { "ok" } else { "another key" },
        );
        assert_eq!(code, expected, "{name}");
    }
}

fn p256() -> Material {
    let [x, y] = [&KEY[..64], &KEY[64..]].map(|hex| text::from_hex(hex).unwrap());
    Material::Ec { curve: Curve::P256, x, y }
}

/// One key, one name: numbers have no zeros in front, and a kind of key has
/// its own algorithms.
#[test]
fn other_kinds_have_one_encoding() {
    let modulus = [&[0xc1], [0x5a; 254].as_slice(), &[1]].concat();
    let rsa = |n: &[u8], e: &[u8]| {
        PublicKey::new(Material::Rsa { n: n.to_vec(), e: e.to_vec() }).map_err(|e| e.code())
    };
    assert!(rsa(&modulus, &[1, 0, 1]).is_ok());
    let wrong = Err("key-invalid-material");
    assert_eq!(rsa(&[&[0], modulus.as_slice()].concat(), &[1, 0, 1]), wrong);
    assert_eq!(rsa(&modulus, &[0, 1, 0, 1]), wrong);
    assert_eq!(rsa(&modulus, &[]), wrong);
    assert_eq!(rsa(&[], &[1, 0, 1]), wrong);
    // {1: 7, 3: -7, -1: h'00'}: an AKP key that claims ES256.
    let akp = PublicKey::from_cose_key(&text::from_hex("a301070326204100").unwrap());
    assert_eq!(akp.map_err(|e| e.code()), wrong);
}
