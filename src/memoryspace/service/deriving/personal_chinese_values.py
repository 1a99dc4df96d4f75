"""The rows that read an exact value out of a Chinese clause.

A row sees what follows "我" or "我妹妹", with signs of time and degree cut off; ``v`` is the value.
The first row that matches wins. What no row reads is still a fact if it touches a matter of life.
"""

from __future__ import annotations

import re

from .personal_chinese_matters import ANIMALS
from .personal_english_values import row

# Words between a person and what they do, which say when or how much.
ADVERBS = re.compile(
    r"(?:(?:现在|目前|今年|最近|近来|平时|平常|一直|从小就?|其实|真的|真|确实|也|还|都|就|又"
    r"|已经|已|刚刚?|非常|特别|很|挺|最|比较|超级?|十分|蛮|尤其|总是|经常|"
    r"通常|一般|有时候?|偶尔|终于|主要|本来|个人|自己|当然|正|这几天|这段时间|今天|昨天|昨晚"
    r"|前天|明天|周末|[上下这]个?(?:周末?|月)|去年|前年|明年|"
    r"[\d一二两三四五六七八九十几]+(?:[天年周]|个月)前|(?:\d{4}年)?\d{1,2}月(?:\d{1,2}[日号])?"
    r"|\d{4}年)[，,]?)*"
)
SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏"
    "吕丁任卢姚沈钟姜崔谭陆范汪廖石贾韦夏方邹熊白孟秦邱侯江尹薛段雷龙黎史陶贺毛顾龚邵万钱戴严莫"
    "孔汤温康施牛葛邢安齐易乔庞曲简高"
)
_CUT = r"(?=[，。！；,!;…~～（(]|了[，。！]|$)"
_V = rf"(?P<v>[^，。！；,!;…~～（(]+?){_CUT}"
_NOTHING = r"(?!里面|那里|这里|这|那|你|您|它|他|她|什么|的[，。]|听你|和你|跟你|吗|呢|吧)"
_WORK = (
    r"[^，。！；,!]{0,12}?(?:工程师|程序员|[老教]师|医生|护士|律师|会计|设计师|学生|研究生"
    r"|博士生?|司机|厨师|记者|编辑|作家|画家|歌手|演员|导演|警察|军人|老板|经理|主管|销售|顾问|"
    r"翻译|摄影师|建筑师|科学家|研究员|教授|公务员|实习生|主播|博主|运动员|教练|职员|员工|文员"
    r"|快递员|服务员|飞行员|药剂师|咨询师|分析师|模特|消防员|农民|工人|家庭主妇|全职妈妈)"
)


ROWS = (
    # what is liked no longer
    row(
        rf"不(?:再|怎么)?(?:喜欢|爱)(?P<v>[^，。！；]+?)了{_CUT}",
        "likes",
        polarity=-1,
        change=True,
        is_list=True,
    ),
    # who somebody is
    row(
        r"(?:的名字[叫是]|名字[叫是]|名叫|叫做|叫)(?!我|他|她|你|了|外卖|车|醒|人|上|不"
        r"|什么)(?P<v>[\u4e00-\u9fffA-Za-z·]{1,12}?)"
        r"(?=[，。！；,!\s]|$)",
        "name",
    ),
    row(r"(?:今年|是|才|都|快|马上)?(?P<v>[\d一二三四五六七八九十]{1,4})周?岁", "age"),
    row(rf"(?:的)?生日(?:是|在|就是)?(?:每年)?(?:的)?{_V}", "birthday"),
    row(
        rf"(?:来自于?|出生[于在]|生于|老家[在是]|的家乡[是在]|的老家[是在]|在(?=[^，。]+长大)){_V}",
        "hometown",
    ),
    row(
        r"是?(?P<v>(?!.{0,4}[个的年家好]人)[\u4e00-\u9fff]{2,6})人(?=[，。！]|$)",
        "hometown",
    ),
    row(rf"(?:(?:家)?(?:住|居住|定居|生活)[在于]|(?:的)?家(?:就)?在(?!家)){_V}", "home"),
    row(
        r"(?:和[^，。]{1,6})?(?:从[^，。！]{1,12})?(?:搬|搬家|搬来|移居|移民)(?:到|去|回"
        r"|来)了?(?!跟|和)(?P<v>[^，。！；了]+?)(?:了|居住|生活|住)*"
        r"(?=[，。！；]|$)",
        "home",
        change=True,
    ),
    row(r"(?:是(?:一[个名位])?)?(?P<v>素食(?:主义)?者?|纯素者?|吃素|不吃肉)", "diet"),
    row(
        r"对(?P<v>[^，。！；]+?)(?:有点|严重|会)?过敏(?!了?好|[^，。]{0,3}消)",
        "allergy",
        is_list=True,
    ),
    # work and school
    row(
        rf"在(?!找|家|努力|忙|做|外面|认真|这|那)(?P<v>[^，。！；]+?)(?:工作|上班|任职|就职){_CUT}",
        "employer",
    ),
    row(
        rf"(?:是|成为了?|担任)(?:在[^，。！]{{1,12}}?)?一?[名个位]?(?P<v>{_WORK})(?:了)?{_CUT}",
        "job",
    ),
    # tastes
    row(
        rf"最?(?:喜欢|爱|喜爱)的(?P<own>[^，。！；是]{{1,10}})(?:是|就是|有|莫过于){_NOTHING}{_V}",
        "favourite *",
    ),
    row(
        r"的(?:兴趣爱好|兴趣|爱好)(?:是|有|包括|就是)(?P<v>[^。！；!;…~～]+)", "likes", is_list=True
    ),
    row(
        rf"(?:(?:不太|不怎么|不是很|不|没那么)(?:喜欢|爱(?!好)|喜爱)|讨厌|受不了"
        rf"|厌恶){_NOTHING}{_V}",
        "likes",
        polarity=-1,
        is_list=True,
    ),
    row(
        rf"(?:从来?不|不能|不会|不)(?:吃|喝|碰)(?!饭|完|下|惯|得|了|到"
        rf"|起)(?P<v>[^，。！；,!;…~～（(了]+?)(?:的呀?)?{_CUT}",
        "eats",
        polarity=-1,
        is_list=True,
    ),
    row(rf"(?:害怕|恐惧|怕){_NOTHING}(?!自己|会|我|说|打扰|麻烦|是|忘){_V}", "fears"),
    row(
        rf"(?:喜欢|热爱|喜爱|酷爱|迷上了?|爱上了?|爱(?![人情心护惜国]))(?!的){_NOTHING}{_V}",
        "likes",
        is_list=True,
    ),
    row(
        r"对(?P<v>[^，。！；你您这那他她]+?)(?:很|非常|特别|也|比较|一直|十分|挺)*(?:感兴趣"
        r"|有兴趣|着迷)",
        "likes",
        is_list=True,
    ),
    # animals, numbers
    row(
        rf"(?:有|(?:领|收)?养了?)(?:了)?(?P<v>(?:[一两二三四五几\d]+"
        rf"|好几)?[只条头匹](?:[^，。！的]{{0,4}}的?)?{ANIMALS}[^，。！；]*)",
        "pets",
    ),
    row(rf"的(?:电话|手机号?|手机号码|电话号码)是{_V}", "phone"),
    row(r"的(?:邮箱|电子邮箱)是(?P<v>\S+@[\w.-]+)", "email"),
    # 我是 and a name: whatever else it could be stands above
    row(rf"是(?P<v>[{SURNAMES}][\u4e00-\u9fff]{{1,2}})(?=[，。！,!]|$)", "name"),
)
